/**
 * The Helm chart, as far as Node.js alone can tell: its copies, its values, and what its schema refuses. test/cluster
 * renders and installs it.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { Ajv } from "ajv";
import { parse } from "yaml";
import { findCharts, findCopies, listCopies, readVersion, withVersion } from "../../infra/chart.ts";
import { ROOT } from "./manifests.ts";

type Values = Readonly<Record<string, unknown>>;

const CHART = join(ROOT, "infra/helm/zonewise");
const text = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const values = parse(readFileSync(join(CHART, "values.yaml"), "utf8")) as Values;
const schema = JSON.parse(readFileSync(join(CHART, "values.schema.json"), "utf8")) as object;
const validate = new Ajv({ allErrors: true, allowUnionTypes: true }).compile(schema);

/** Values with one of them set, by its path; undefined is Helm's null, which removes it. */
function withValue(path: string, value: unknown): Values {
  const copy = structuredClone(values) as Record<string, unknown>;
  const keys = path.split(".");
  const last = keys.pop() ?? "";
  let at = copy;
  for (const key of keys) at = (at[key] ??= {}) as Record<string, unknown>;
  if (value === undefined) delete at[last];
  else at[last] = value;
  return copy;
}

/** What the schema says about values: nothing if it takes them. */
function refusalOf(all: Values): string {
  validate(all);
  return (validate.errors ?? [])
    .map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`)
    .join("\n");
}

describe("the definitions in the chart", () => {
  it("stay when a release that owns them is upgraded without them", () => {
    const files = globSync("infra/helm/zonewise/charts/*/crds/*.yaml", { cwd: ROOT });
    assert.equal(files.length, 7);
    for (const file of files) {
      const { metadata } = parse(text(file)) as { metadata: { annotations?: Readonly<Record<string, string>> } };
      assert.equal(metadata.annotations?.["helm.sh/resource-policy"], "keep", file);
    }
  });
});

describe("the copies of the manifests in the chart", () => {
  it("are all there, and no other", () =>
    assert.deepEqual(
      findCopies(ROOT),
      listCopies(ROOT)
        .map(({ to }) => to)
        .toSorted(),
    ));
});

it("no folder of manifests is in the chart that its templates never render", () => {
  const templates = globSync(join(CHART, "templates/*")).map((file) => readFileSync(file, "utf8"));
  const folders = findCopies(ROOT).flatMap((file) => /\/manifests\/([^/]+)\//.exec(file)?.[1] ?? []);
  const isRendered = (folder: string): boolean =>
    templates.some((template) => template.includes(`"${folder}"`) || template.includes(`"manifests/${folder}/`));
  assert.deepEqual(
    [...new Set(folders)].filter((folder) => !isRendered(folder)),
    [],
  );
});

describe("the version in package.json", () => {
  it("is written over every other version in a chart", () => {
    const chart =
      "apiVersion: v2\nversion: 0.1.0\nappVersion: 0.0.9\nkubeVersion: a\n- {name: crds, version: 0.0.8, b: c}";
    assert.equal(
      withVersion(chart, "2.0.0-rc.1"),
      "apiVersion: v2\nversion: 2.0.0-rc.1\nappVersion: 2.0.0-rc.1\nkubeVersion: a\n- {name: crds, version: 2.0.0-rc.1, b: c}",
    );
    assert.equal(findCharts(ROOT).length, 3);
  });
  it("is that of package-lock.json, which the bill of materials is made of", () =>
    assert.equal((JSON.parse(text("package-lock.json")) as { version: string }).version, readVersion(ROOT)));
});

it("each webhook has a failure policy among the values", () => {
  const camelCase = (name: string): string => name.replace(/-[a-z]/g, (part) => part.slice(1).toUpperCase());
  const { failurePolicies } = values["webhooks"] as { failurePolicies: object };
  const names = listCopies(ROOT).flatMap(
    ({ from }) => /\/(?:webhooks|pod-deletion-webhook)\/(.+)\.yaml$/.exec(from)?.[1] ?? [],
  );
  assert.deepEqual(Object.keys(failurePolicies).toSorted(), names.map(camelCase).toSorted());
});

/** The values of grafana/helm-charts' rollout-operator 0.53.0. */
const ORIGINAL = `
  affinity annotations crds.enabled extraArgs extraEnv extraEnvFrom fullnameOverride global.commonLabels hostAliases hostNetwork image.pullPolicy
  image.registry image.repository image.tag imagePullSecrets minReadySeconds nameOverride namespaceSelector.matchExpressions nodeSelector
  podAnnotations podLabels podSecurityContext priorityClassName resources.limits.memory resources.requests.cpu resources.requests.memory
  revisionHistoryLimit securityContext serviceAccount.annotations serviceAccount.create serviceAccount.name serviceMonitor.annotations
  serviceMonitor.enabled serviceMonitor.interval serviceMonitor.labels serviceMonitor.namespace serviceMonitor.namespaceSelector
  serviceMonitor.relabelings serviceMonitor.scrapeTimeout tolerations webhooks.enabled webhooks.failurePolicies.noDownscale
  webhooks.failurePolicies.podEviction webhooks.failurePolicies.prepareDownscale webhooks.failurePolicies.zpdbValidation webhooks.failurePolicy
  webhooks.objectSelector webhooks.selfSignedCertSecretName webhooks.timeoutSeconds`
  .trim()
  .split(/\s+/);

/** Settings of its users, each of which has its meaning here. */
const TAKEN: readonly (readonly [string, unknown])[] = [
  ["affinity", { nodeAffinity: {} }],
  ["global.commonLabels", { team: "metrics" }],
  ["hostAliases", [{ ip: "192.0.2.1", hostnames: ["gateway"] }]],
  ["hostNetwork", true],
  ["image.tag", undefined],
  ["image.tag", "1.0.0@sha256:0000"],
  ["image.repository", "registry.example/team/zonewise"],
  ["image.repository", "rollout-operator/zonewise"],
  ["imagePullSecrets", [{ name: "registry" }]],
  ["extraArgs", []],
  ["extraEnv", [{ name: "LOG_LEVEL", value: "debug" }]],
  ["namespaceSelector.matchExpressions", [{ key: "team", operator: "NotIn", values: ["a"] }]],
  ["podSecurityContext.runAsUser", undefined],
  ["resources.limits", undefined],
  ["serviceAccount.create", false],
  ["serviceMonitor.enabled", true],
  ["serviceMonitor.interval", "15s"],
  ["podMonitor.enabled", true],
  ["phasedPolicy.enabled", true],
  ["podDeletionWebhook.enabled", true],
  ["prometheusSecrets", { names: ["zonewise-prometheus"], namespaces: ["cell-a"] }],
  ["prometheusRule.namespace", "monitoring"],
  ["dashboards.annotations", { "k8s-sidecar-target-directory": "/tmp/dashboards/Zonewise" }],
  ["podDisruptionBudget.minAvailable", "50%"],
  ["networkPolicy", { enabled: true, apiServer: "10.0.0.0/28", monitoring: "monitoring" }],
  ["tolerations", [{ operator: "Exists" }]],
  ["webhooks.failurePolicy", "Ignore"],
  ["nodeUpdates.enabled", true],
  ["nodeUpdates.policy", { maxConcurrent: "25%" }],
  ["webhooks.failurePolicies.podEviction", ""],
  ["webhooks.failurePolicies.zpdbValidation", undefined],
];

const REFUSED: readonly (readonly [string, unknown, RegExp])[] = [
  ["extraArgs", ["-log.level=debug"], /^\/extraArgs .*refused: Zonewise has variables instead of flags.*extraEnv/m],
  ["nameOverride", "a", /^\/nameOverride .*refused: names are fixed/m],
  ["fullnameOverride", "a", /^\/fullnameOverride .*refused: names are fixed/m],
  ["serviceAccount.name", "a", /^\/serviceAccount\/name .*refused: each process has an account/m],
  [
    "webhooks.objectSelector",
    { matchLabels: { a: "b" } },
    /^\/webhooks\/objectSelector .*refused: Evictions and Scales/m,
  ],
  [
    "namespaceSelector.matchLabels",
    { a: "b" },
    /^\/namespaceSelector\/matchLabels .*refused: a release serves its own namespace/m,
  ],
  ["namespaceSelector", undefined, /refused: namespaceSelector: null; a release serves its own namespace/],
  ["reconciler.allNamespaces", true, /^\/webhooks\/enabled must be equal to constant .*false/m],
  ["networkPolicy.enabled", true, /^\/networkPolicy\/apiServer must match pattern/m],
  ["networkPolicy.apiServer", undefined, /^\/networkPolicy must have required property 'apiServer'/m],
  ["service.name", "", /^\/service\/name must match pattern/m],
  ["hostnetwork", true, /additional properties.*"hostnetwork"/],
  ["webhooks.failurepolicy", "Ignore", /^\/webhooks .*additional properties.*"failurepolicy"/m],
  ["webhooks.failurePolicies.eviction", "Fail", /^\/webhooks\/failurePolicies .*"eviction"/m],
  [
    "webhooks.failurePolicies.podEviction",
    "Open",
    /^\/webhooks\/failurePolicies\/podEviction must be equal to one of/m,
  ],
  ["webhooks.failurePolicy", "", /^\/webhooks\/failurePolicy must be equal to one of/m],
  ["prometheusSecrets.namespaces", ["cell-a"], /^\/prometheusSecrets\/names must NOT have fewer than 1/m],
  ["prometheusSecrets.names", ["A_B"], /^\/prometheusSecrets\/names\/0 must match pattern/m],
  ["prometheusRule.groups", [], /^\/prometheusRule .*additional properties.*"groups"/m],
  ["replicas", 0, /^\/replicas must be >= 1/m],
  ["replicas", undefined, /required property 'replicas'/],
  ["image.repository", "", /^\/image\/repository must NOT have fewer than 1/m],
  ["image.repository", "grafana/rollout-operator", /^\/image\/repository .*refused: this image is rollout-operator/m],
  [
    "image.repository",
    "mirror.example:5000/docker.io/grafana/rollout-operator",
    /refused: this image is rollout-operator/,
  ],
  ["image.repository", "mirror.example/grafana-rollout-operator@sha256", /refused: this image is rollout-operator/],
  ["podDisruptionBudget.minAvailable", "one", /^\/podDisruptionBudget\/minAvailable must match pattern/m],
  ["extraEnv", [{ value: "a" }], /^\/extraEnv\/0 must have required property 'name'/m],
  ["nodeUpdates.namespace", "a", /^\/nodeUpdates .*additional properties.*"namespace"/m],
];

describe("the schema of the chart's values", () => {
  it("takes the defaults", () => assert.equal(refusalOf(values), ""));

  for (const path of ORIGINAL)
    it(`has the original's ${path}`, () => {
      const keys = path.split(".");
      let at: unknown = values;
      for (const key of keys) {
        assert.ok(typeof at === "object" && at !== null && key in at, path);
        at = (at as Values)[key];
      }
    });

  for (const [path, value] of TAKEN)
    it(`takes ${path} ${JSON.stringify(value) ?? "null"}`, () => assert.equal(refusalOf(withValue(path, value)), ""));
  for (const [path, value, message] of REFUSED)
    it(`refuses ${path} ${JSON.stringify(value) ?? "null"} by name`, () =>
      assert.match(refusalOf(withValue(path, value)), message));

  it("refuses both monitors at once, and a monitor without the functions, which serve the metrics", () => {
    const both = {
      ...withValue("podMonitor.enabled", true),
      serviceMonitor: { ...(values["serviceMonitor"] as object), enabled: true },
    };
    assert.match(refusalOf(both), /^\/podMonitor\/enabled must be equal to constant/m);
    const alone = { ...withValue("webhooks.enabled", false), serviceMonitor: both.serviceMonitor };
    assert.match(refusalOf(alone), /^\/serviceMonitor\/enabled must be equal to constant/m);
  });

  it("refuses both guards of deletions at once, and the webhook without the functions", () => {
    const webhook = withValue("podDeletionWebhook.enabled", true);
    assert.match(
      refusalOf({ ...webhook, podDeletionPolicy: { enabled: true } }),
      /^\/podDeletionWebhook\/enabled must be equal to constant/m,
    );
    assert.match(
      refusalOf({ ...webhook, webhooks: { ...(values["webhooks"] as object), enabled: false } }),
      /^\/podDeletionWebhook\/enabled must be equal to constant/m,
    );
  });

  for (const policy of ["podDeletionPolicy", "reconcilerPolicy", "replicasPolicy"])
    it(`refuses ${policy} with a reconciler of all namespaces, as it concerns the release's own alone`, () => {
      const chosen = { webhooks: { ...(values["webhooks"] as object), enabled: false }, [policy]: { enabled: true } };
      assert.match(
        refusalOf({ ...withValue("reconciler.allNamespaces", true), ...chosen }),
        new RegExp(`^/${policy}/enabled must be equal to constant`, "m"),
      );
      assert.equal(refusalOf({ ...values, ...chosen }), "");
    });
});
