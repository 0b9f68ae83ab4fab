/** The Helm chart renders what kustomize renders for the same choices. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readPatches } from "../migration/steps.ts";
import { CHART, HELM, parseManifests } from "./helm.ts";
import { type Manifest, renderManifests, type Rendering } from "../stage/manifests.ts";

const COMPLETE = "infra/manifests/complete";
const NETWORK = "infra/manifests/network-policy/source.yaml";
const KUSTOMIZATION = `${COMPLETE}/kustomization.yaml`;
/** The image that kustomizations name. */
const IMAGE = { image: { tag: "latest" } };

/** What a user writes into the kustomization of `complete`. */
const listing = (component: string, more = ""): Rendering => ({
  edit: { [KUSTOMIZATION]: (text) => `${text.replace("components: [", `components: [${component}, `)}${more}` },
});

interface Choice {
  readonly values: object;
  readonly kustomize: readonly Rendering[];
  readonly namespace?: string;
  readonly flags?: readonly string[];
}

const NETWORK_POLICY = listing("../network-policy").edit;
const fillIn = (text: string): string =>
  text.replace(/apiServer: \S+/, "apiServer: 10.0.0.0/28").replace(/monitoring: \S+/, "monitoring: metrics");
const FILLED_IN = { [NETWORK]: fillIn };
const NODES_FOLDER = "infra/manifests/node-updates";
const toRelease = (text: string): string => text.replace("namespace: zonewise", "namespace: cell-a-1");
/** Beside the reconciler of the release. */
const BESIDE = { [`${NODES_FOLDER}/reconciler.yaml`]: toRelease };
const NODES = `
replicas: [{name: zonewise-functions, count: 3}]
patches:
  - target: {kind: Deployment}
    patch: '[{"op": "add", "path": "/spec/template/spec/nodeSelector", "value": {"pool": "infra"}}]'
  - target: {kind: CronJob}
    patch: '[{"op": "add", "path": "/spec/jobTemplate/spec/template/spec/nodeSelector", "value": {"pool": "infra"}}]'
`;

const PATCHES = await readPatches({ OPERATOR: "mimir-rollout-operator", NAMESPACE: "cell-a-1" });

const CHOICES: Readonly<Record<string, Choice>> = {
  complete: { values: {}, kustomize: [{}] },
  "webhooks that fail open": {
    values: { webhooks: { failurePolicy: "Ignore" } },
    kustomize: [{ components: ["infra/manifests/webhooks/ignore"] }],
  },
  "the reconciler alone": {
    values: { webhooks: { enabled: false } },
    kustomize: [{ folder: "infra/manifests/reconciler", components: ["infra/manifests/namespace"] }],
  },
  "all namespaces": {
    values: { webhooks: { enabled: false }, reconciler: { allNamespaces: true } },
    kustomize: [{ folder: "infra/manifests/all-namespaces" }],
    namespace: "zonewise",
  },
  "no policies of /scale": {
    values: { scalePolicies: { enabled: false } },
    kustomize: [{ edit: { [KUSTOMIZATION]: (text) => text.replace(", ../scale-policies", "") } }],
  },
  "the policy on deletions of pods": {
    values: { podDeletionPolicy: { enabled: true } },
    kustomize: [{}, { folder: "infra/manifests/pod-deletion-policy" }],
  },
  "the webhook on deletions of pods": {
    values: { podDeletionWebhook: { enabled: true } },
    kustomize: [{}, { folder: "infra/manifests/pod-deletion-webhook" }],
  },
  "the policy on replicas": {
    values: { replicasPolicy: { enabled: true } },
    kustomize: [{}, { folder: "infra/manifests/replicas-policy" }],
  },
  "the policy on the reconciler": {
    values: { reconcilerPolicy: { enabled: true } },
    kustomize: [{}, { folder: "infra/manifests/reconciler-policy" }],
  },
  "the policy on templates of PhasedRollouts": {
    values: { phasedPolicy: { enabled: true } },
    kustomize: [{}, { folder: "infra/manifests/phased-policy" }],
  },
  "no policy on templates before Kubernetes 1.36, where the API server knows none": {
    values: { phasedPolicy: { enabled: true } },
    flags: ["--kube-version", "1.35.9"],
    kustomize: [{}],
  },
  "the right to read a Secret for queries": {
    values: { prometheusSecrets: { names: ["zonewise-prometheus"] } },
    kustomize: [
      { edit: { [KUSTOMIZATION]: (text) => text.replace("resources: [", "resources: [../prometheus-secrets, ") } },
    ],
  },
  "alerts and the dashboard": {
    values: { prometheusRule: { enabled: true }, dashboards: { enabled: true } },
    kustomize: [{}, { folder: "infra/observability", components: ["infra/manifests/namespace"] }],
  },
  "network policies": {
    values: { networkPolicy: { enabled: true, apiServer: "10.0.0.0/28", monitoring: "metrics" } },
    kustomize: [{ edit: { ...NETWORK_POLICY, ...FILLED_IN } }],
  },
  "network policies of a release in the namespace that is monitoring's by default": {
    values: { networkPolicy: { enabled: true, apiServer: "10.0.0.0/28", monitoring: "metrics" } },
    kustomize: [{ edit: { ...NETWORK_POLICY, ...FILLED_IN } }],
    namespace: "monitoring",
  },
  "a ServiceMonitor": { values: { serviceMonitor: { enabled: true } }, kustomize: [listing("../service-monitor")] },
  "a PodMonitor": { values: { podMonitor: { enabled: true } }, kustomize: [listing("../pod-monitor")] },
  "three functions, all pods on certain nodes": {
    values: { replicas: 3, nodeSelector: { pool: "infra" } },
    kustomize: [{ edit: { [KUSTOMIZATION]: (text) => text + NODES } }],
  },
  "another name of the Service, as docs/migrate/rollout-operator.md says for the original's chart": {
    values: { service: { name: "mimir-rollout-operator" } },
    kustomize: [{ edit: { [KUSTOMIZATION]: (text) => text + PATCHES } }],
  },
  "node updates": {
    values: { nodeUpdates: { enabled: true } },
    kustomize: [{}, { folder: NODES_FOLDER, edit: BESIDE }],
  },
  "node updates with network policies": {
    values: {
      networkPolicy: { enabled: true, apiServer: "10.0.0.0/28", monitoring: "metrics" },
      nodeUpdates: { enabled: true },
    },
    kustomize: [
      { edit: { ...NETWORK_POLICY, ...FILLED_IN } },
      {
        folder: NODES_FOLDER,
        edit: {
          ...BESIDE,
          [`${NODES_FOLDER}/network-policy/source.yaml`]: fillIn,
          [`${NODES_FOLDER}/kustomization.yaml`]: (text) =>
            text.replace("components: []", "components: [network-policy]"),
        },
      },
    ],
  },
  "definitions of node updates": {
    values: { nodeUpdates: { enabled: true } },
    flags: ["--include-crds"],
    kustomize: [
      {},
      { folder: "infra/manifests/crds" },
      { folder: NODES_FOLDER, edit: BESIDE },
      { folder: `${NODES_FOLDER}/crds` },
    ],
  },
  definitions: {
    values: {},
    flags: ["--include-crds"],
    kustomize: [{}, { folder: "infra/manifests/crds" }],
  },
};

const byName = (manifests: readonly Manifest[]): Record<string, Manifest> =>
  Object.fromEntries(manifests.map((one) => [`${one.kind} ${one.metadata.namespace ?? ""}/${one.metadata.name}`, one]));

const { missing, run: runHelm, template } = HELM;

describe("the chart", { skip: missing }, () => {
  it("passes helm lint", async () => {
    const { code, text } = await runHelm(["lint", "--strict", CHART, "--values", "-"]);
    assert.equal(code, 0, text);
  });

  for (const [name, { values, kustomize, namespace = "cell-a-1", flags }] of Object.entries(CHOICES))
    it(`renders what kustomize renders: ${name}`, async () => {
      const { code, text } = await template(namespace, { ...IMAGE, ...values }, flags);
      assert.equal(code, 0, text);
      const rendered = parseManifests(text);
      const wanted = (await Promise.all(kustomize.map((rendering) => renderManifests(namespace, rendering)))).flat();
      assert.equal(Object.keys(byName(rendered)).length, rendered.length, "each object once");
      assert.deepEqual(byName(rendered), byName(wanted));
    });

  it("takes a namespace that YAML would read as a number, and any range of addresses", async () => {
    const { code, text } = await template("2024", { networkPolicy: { enabled: true, apiServer: "::/0" } });
    assert.equal(code, 0, text);
    const rendered = parseManifests(text);
    assert.deepEqual(
      rendered.filter(({ metadata }) => typeof (metadata.namespace ?? "") !== "string"),
      [],
    );
    assert.ok(!/: 2024$/m.test(text), "no number");
    assert.ok(text.includes("cidr: ::/0"));
  });

  it("refuses what its schema refuses, in the schema's words (test/infra/chart.test.ts), before it renders anything", async () => {
    const { code, text } = await template("cell-a-1", { nameOverride: "a", hostnetwork: true });
    assert.notEqual(code, 0);
    assert.ok(text.includes("at '/nameOverride': value must be 'refused: names are fixed"), text);
    assert.ok(text.includes("additional properties 'hostnetwork' not allowed"), text);
  });
});
