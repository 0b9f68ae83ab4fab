/** `zonewise doctor`: what an installation lacks, and whose removal would delete the definitions (docs/migrate/rollout-operator.md). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Finding } from "../../../../cli/decide/doctor/check.ts";
import { diagnose } from "../../../../cli/decide/doctor/checks.ts";
import { describeRight, RECONCILER_RIGHTS } from "../../../../cli/decide/doctor/rights.ts";
import type { WebhookConfiguration } from "../../../../infra/kubernetes/resources.ts";
import type { Guard } from "../../../../reconciler/budget/guard.ts";
import { read, rightsOf, rulesOf } from "../../../infra/manifests.ts";

const NAME = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";
const OURS = { "helm.sh/resource-policy": "keep", "kubectl.kubernetes.io/last-applied-configuration": "{}" };

interface Row {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly says?: RegExp;
}

const ROWS: readonly Row[] = [
  { name: "nothing of a definition that was applied from Zonewise's manifests", annotations: OURS },
  { name: "nothing of one that Helm created from a chart's crds/" },
  {
    name: "a Helm release of the original, also after an apply of ours",
    labels: { "app.kubernetes.io/managed-by": "Helm" },
    annotations: { ...OURS, "meta.helm.sh/release-name": "mimir", "meta.helm.sh/release-namespace": "metrics" },
    says: /Helm release metrics\/mimir: its removal deletes it, together with every object of this kind/,
  },
  {
    name: "an application of Argo CD",
    annotations: {
      "argocd.argoproj.io/tracking-id": `operator:apiextensions.k8s.io/CustomResourceDefinition:/${NAME}`,
    },
    says: /Argo CD application operator: it prunes it/,
  },
  {
    name: "a Kustomization of Flux",
    labels: { "kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system" },
    says: /Flux object flux-system\/apps: it prunes it/,
  },
  {
    name: "the original's own manifests",
    annotations: { "controller-gen.kubebuilder.io/version": "v0.16.5" },
    says: /the original's manifests, which were applied: kubectl delete -f/,
  },
  {
    name: "nothing of Zonewise's own application",
    annotations: { "argocd.argoproj.io/tracking-id": "zonewise-crds:x" },
  },
];

describe("zonewise doctor warns of", () => {
  for (const { name, labels = {}, annotations = {}, says } of ROWS)
    it(name, () => {
      const findings = diagnose({
        definitions: [{ metadata: { name: NAME, labels: { ...labels }, annotations: { ...annotations } } }],
      });
      assert.equal(findings.length, says ? 1 : 0);
      if (!says) return;
      assert.deepEqual(
        [findings[0]?.level, findings[0]?.check, findings[0]?.object],
        ["warning", "definition-owner", `customresourcedefinition/${NAME}`],
      );
      assert.match(findings[0]?.message ?? "", says);
    });
});

const summaryOf = (findings: readonly Finding[]): string[] =>
  findings.map(({ level, check, object }) => `${level} ${check} ${object}`);

describe("zonewise doctor", () => {
  it("finds an eviction webhook that fails open", () => {
    const hook = (failurePolicy: string, path: string) =>
      ({
        metadata: { name: "evictions" },
        webhooks: [{ name: "w", failurePolicy, clientConfig: { caBundle: "Cg==", service: { name: "s", path } } }],
      }) as unknown as WebhookConfiguration;
    const found = diagnose({
      webhooks: [
        hook("Ignore", "/admission/mutate-pod-eviction"),
        hook("Fail", "/admission/mutate-pod-eviction"),
        hook("Ignore", "/admission/zpdb-validation"),
      ],
    });
    assert.deepEqual(summaryOf(found), ["warning webhook-fails-open webhookconfiguration/evictions"]);
    assert.match(
      found[0]?.fix ?? "",
      /kubectl patch mutatingwebhookconfiguration evictions --type=json .*"value":"Fail"/,
    );
  });

  it("finds a webhook of ours without a CA, and leaves others alone", () => {
    const hook = (name: string, caBundle?: string) =>
      ({
        metadata: { name },
        webhooks: [{ name: "w", clientConfig: { service: { name: "s" }, ...(caBundle && { caBundle }) } }],
      }) as unknown as WebhookConfiguration;
    const found = diagnose({
      webhooks: [hook("pod-eviction-zonewise"), hook("no-downscale-zonewise", "Cg=="), hook("other")],
    });
    assert.deepEqual(summaryOf(found), ["error webhook-without-ca webhookconfiguration/pod-eviction-zonewise"]);
    assert.match(found[0]?.fix ?? "", /^give it the label grafana.com\/inject-rollout-operator-ca=true/);
    const labels = { "grafana.com/inject-rollout-operator-ca": "true" };
    const labelled = { ...hook("pod-eviction-zonewise"), metadata: { name: "pod-eviction-zonewise", labels } };
    const [ours] = diagnose({ webhooks: [labelled] });
    assert.match(ours?.fix ?? "", /by the roles of infra\/manifests\/certificates, and without them nobody does/);
  });

  it("finds missing rights", () => {
    const all = RECONCILER_RIGHTS;
    const found = [0, 1, all.length].map((count) => diagnose({ missingRights: all.slice(0, count) }));
    const one = "it may not get statefulsets.apps";
    const messages = found.map((findings) => findings.map(({ message }) => message));
    assert.deepEqual(messages, [[], [one], ["it has none of the rights that it needs"]]);
  });

  it("asks for rights of the reconciler that its manifest grants", () => {
    const granted = new Set(read("infra/manifests/reconciler/rbac.yaml").flatMap(rulesOf).flatMap(rightsOf));
    const short = RECONCILER_RIGHTS.map((right) => describeRight({ ...right, group: "" }));
    assert.deepEqual(
      short.filter((right) => !granted.has(right)),
      [],
    );
    assert.ok(short.length > 20);
  });
});

it("calls what is known to be wrong an error, and what could not be seen a warning", () => {
  const said = { message: "m", remedy: "r" };
  const guard = (reason: Guard["reason"], notTried?: true) => ({
    budget: "db",
    guard: { reason, ...said, ...(notTried && { notTried }) },
  });
  const guards = [guard("Guarded"), guard("NoWebhook"), guard("WebhookDown"), guard("NotSeen"), guard("NotSeen", true)];
  assert.deepEqual(summaryOf(diagnose({ guards })), [
    "error not-guarded zpdb/db",
    "error not-guarded zpdb/db",
    "warning not-checked zpdb/db",
    "warning not-tried zpdb/db",
  ]);
  const ticks = (["stopped", "unknown"] as const).map((state) => ({ state, reason: "NotKnown", ...said }) as const);
  assert.deepEqual(summaryOf(diagnose({ noTicks: ticks })), [
    "error no-tick reconciler",
    "warning not-checked reconciler",
  ]);
});
