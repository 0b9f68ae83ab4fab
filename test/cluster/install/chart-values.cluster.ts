/**
 * What each value of the Helm chart changes, beside what kustomize has a component for: exactly this, and nothing else.
 */
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { changesOf, type Fields, fieldsOf } from "../stage/fields.ts";
import { HELM, parseManifests } from "./helm.ts";

const NAMESPACE = "cell-a-1";

/** The rendered fields, `Kind name path.to.field`. */
async function render(values: object): Promise<Fields> {
  const { code, text } = await HELM.template(NAMESPACE, values);
  assert.equal(code, 0, text);
  return Object.assign(
    {},
    ...parseManifests(text).map((one) => fieldsOf(one, `${one.kind} ${one.metadata.name} `)),
  ) as Fields;
}

const DEPLOYMENT = "Deployment zonewise-functions";
const RECONCILER = "CronJob zonewise-reconciler";
const CERTIFICATES = "CronJob zonewise-certificates";
const JOB = "spec.jobTemplate.spec.template";
const CONTAINER = "spec.containers.0";
/** The same in the pods of all three. */
const pods = (path: string, value: unknown): Record<string, unknown> => ({
  [`${DEPLOYMENT} spec.template.${path}`]: value,
  [`${RECONCILER} ${JOB}.${path}`]: value,
  [`${CERTIFICATES} ${JOB}.${path}`]: value,
});
/** The same variable, added to the variables that each container has. */
const variables = (
  name: string,
  value: string,
  places = [`${DEPLOYMENT} spec.template.`, `${RECONCILER} ${JOB}.`, `${CERTIFICATES} ${JOB}.`],
) =>
  Object.fromEntries(
    places.flatMap((place) => {
      const at = `${place}${CONTAINER}.env.${place.startsWith("Deployment") ? 3 : place.startsWith(RECONCILER) ? 4 : 1}`;
      return [
        [`${at}.name`, name],
        [`${at}.value`, value],
      ];
    }),
  );
const webhook = (name: string, field: string, value: unknown): Record<string, unknown> => {
  const kind = /^(?:no-downscale|zpdb|phased-validation)/.test(name) ? "Validating" : "Mutating";
  return { [`${kind}WebhookConfiguration ${name}-${NAMESPACE} ${field}`]: value };
};
const WEBHOOKS = [
  "no-downscale",
  "phased-defaults",
  "phased-validation",
  "pod-eviction",
  "prepare-downscale",
  "raise-partition",
  "zpdb-validation",
];
const webhooks = (field: string, value: unknown): Record<string, unknown> =>
  Object.assign({}, ...WEBHOOKS.map((name) => webhook(name, field, value))) as Record<string, unknown>;
const ACCOUNTS = ["functions", "reconciler", "certificates"].map((name) => `ServiceAccount zonewise-${name}`);
const SECRET = "rollout-operator-self-signed-certificate";
const EXPRESSION = { key: "team", operator: "NotIn", values: ["a"] };
const expressions = (at: string): [string, unknown][] => [
  [`${at}.matchExpressions.0.key`, "team"],
  [`${at}.matchExpressions.0.operator`, "NotIn"],
  [`${at}.matchExpressions.0.values.0`, "a"],
];

/** Where monitors, alerts and the dashboard are placed. */
const PLACED = { enabled: true, namespace: "metrics", labels: { team: "a" }, annotations: { a: "b" } };
const placed = (at: string): Record<string, unknown> => ({
  [`${at} metadata.namespace`]: "metrics",
  [`${at} metadata.labels.team`]: "a",
  [`${at} metadata.annotations.a`]: "b",
});
const SCRAPING = {
  interval: "15s",
  scrapeTimeout: "5s",
  relabelings: [{ targetLabel: "cluster", replacement: "a" }],
};
const scraping = (at: string, endpoints: string): Record<string, unknown> => ({
  ...placed(at),
  [`${at} spec.namespaceSelector.matchNames.0`]: NAMESPACE,
  [`${at} spec.${endpoints}.0.interval`]: "15s",
  [`${at} spec.${endpoints}.0.scrapeTimeout`]: "5s",
  [`${at} spec.${endpoints}.0.relabelings.1.targetLabel`]: "cluster",
  [`${at} spec.${endpoints}.0.relabelings.1.replacement`]: "a",
});
const enabled = (key: string): object => ({ [key]: { enabled: true } });

/** Values, what they change, and beside which values. */
const CASES: readonly (readonly [object, Record<string, unknown>, object?])[] = [
  [{ image: { registry: "registry.example", tag: "2" } }, pods(`${CONTAINER}.image`, "registry.example/zonewise:2")],
  // A registry that is left over from the original's values is not put in front of a whole name.
  ...["registry.example", "localhost", "registry:5000"].map(
    (host) =>
      [
        { image: { registry: "docker.io", repository: `${host}/team/zonewise` } },
        pods(`${CONTAINER}.image`, `${host}/team/zonewise:0.1.0`),
      ] as const,
  ),
  [{ image: { repository: "team/zonewise" } }, pods(`${CONTAINER}.image`, "team/zonewise:0.1.0")],
  [{ image: { pullPolicy: "Always" } }, pods(`${CONTAINER}.imagePullPolicy`, "Always")],
  [{ imagePullSecrets: [{ name: "s" }] }, pods("spec.imagePullSecrets.0.name", "s")],
  [{ hostAliases: [{ ip: "192.0.2.1" }] }, pods("spec.hostAliases.0.ip", "192.0.2.1")],
  [{ hostNetwork: true }, { ...pods("spec.hostNetwork", true), ...pods("spec.dnsPolicy", "ClusterFirstWithHostNet") }],
  [{ podAnnotations: { a: "b" } }, pods("metadata.annotations.a", "b")],
  [{ podLabels: { team: "b", "app.kubernetes.io/name": "other" } }, pods("metadata.labels.team", "b")],
  [{ podSecurityContext: { runAsUser: 1000 } }, pods("spec.securityContext.runAsUser", 1000)],
  [{ podSecurityContext: { fsGroup: 1000 } }, { [`${DEPLOYMENT} spec.template.spec.securityContext.fsGroup`]: 1000 }],
  [{ podSecurityContext: { runAsUser: null } }, pods("spec.securityContext.runAsUser", null)],
  [{ securityContext: { runAsGroup: 1000 } }, pods(`${CONTAINER}.securityContext.runAsGroup`, 1000)],
  [{ tolerations: [{ operator: "Exists" }] }, pods("spec.tolerations.0.operator", "Exists")],
  [{ priorityClassName: "high" }, pods("spec.priorityClassName", "high")],
  [{ extraEnvFrom: [{ secretRef: { name: "s" } }] }, pods(`${CONTAINER}.envFrom.0.secretRef.name`, "s")],
  [{ extraEnv: [{ name: "LOG_LEVEL", value: "debug" }] }, variables("LOG_LEVEL", "debug")],
  [
    { extraEnv: [{ name: "SERVER_TLS_CERT_FILE", value: "/a" }], podDisruptionBudget: { minAvailable: 2 } },
    {
      [`${DEPLOYMENT} spec.template.${CONTAINER}.env.1.value`]: "/a",
      ...variables("SERVER_TLS_CERT_FILE", "/a", [`${RECONCILER} ${JOB}.`, `${CERTIFICATES} ${JOB}.`]),
      "PodDisruptionBudget zonewise-functions spec.minAvailable": 2,
    },
  ],
  [{ replicas: 4 }, { [`${DEPLOYMENT} spec.replicas`]: 4 }],
  [{ revisionHistoryLimit: 2 }, { [`${DEPLOYMENT} spec.revisionHistoryLimit`]: 2 }],
  [{ minReadySeconds: 2 }, { [`${DEPLOYMENT} spec.minReadySeconds`]: 2 }],
  [{ annotations: { a: "b" } }, { [`${DEPLOYMENT} metadata.annotations.a`]: "b" }],
  [
    { topologySpreadConstraints: [{ maxSkew: 1 }] },
    {
      [`${DEPLOYMENT} spec.template.spec.topologySpreadConstraints.0.maxSkew`]: 1,
      [`${DEPLOYMENT} spec.template.spec.topologySpreadConstraints.0.labelSelector.matchLabels.app.kubernetes.io/name`]:
        "zonewise-functions",
    },
  ],
  [
    { resources: { limits: { memory: "1Gi" } } },
    { [`${DEPLOYMENT} spec.template.${CONTAINER}.resources.limits.memory`]: "1Gi" },
  ],
  [
    { reconciler: { resources: { limits: { cpu: 1 } } } },
    { [`${RECONCILER} ${JOB}.${CONTAINER}.resources.limits.cpu`]: 1 },
  ],
  [
    { certificates: { resources: { limits: { cpu: 1 } } } },
    { [`${CERTIFICATES} ${JOB}.${CONTAINER}.resources.limits.cpu`]: 1 },
  ],
  [
    { serviceAccount: { annotations: { a: "b" } } },
    Object.fromEntries(ACCOUNTS.map((one) => [`${one} metadata.annotations.a`, "b"])),
  ],
  [{ webhooks: { timeoutSeconds: 5 } }, webhooks("webhooks.0.timeoutSeconds", 5)],
  [{ webhooks: { annotations: { a: "b" } } }, webhooks("metadata.annotations.a", "b")],
  [
    { webhooks: { failurePolicies: { podEviction: "Ignore" } } },
    webhook("pod-eviction", "webhooks.0.failurePolicy", "Ignore"),
  ],
  [
    { webhooks: { failurePolicies: { zpdbValidation: null } } },
    webhook("zpdb-validation", "webhooks.0.failurePolicy", "Fail"),
  ],
  [
    { webhooks: { failurePolicy: "Ignore", failurePolicies: { podEviction: "Fail" } } },
    Object.assign(
      {},
      ...["no-downscale", "prepare-downscale"].map((name) => webhook(name, "webhooks.0.failurePolicy", "Ignore")),
    ) as object,
  ] as [object, Record<string, unknown>],
  [
    { namespaceSelector: { matchExpressions: [EXPRESSION] } },
    Object.fromEntries([
      ...expressions("webhooks.0.namespaceSelector").flatMap(([path, value]) => Object.entries(webhooks(path, value))),
      ...["-deployments-scale", "-replicasets-scale", "-statefulsets-scale", ""].flatMap((of) =>
        expressions(`ValidatingAdmissionPolicy no-downscale${of}.${NAMESPACE} spec.matchConstraints.namespaceSelector`),
      ),
    ]),
  ],
  [{ serviceMonitor: { enabled: false, interval: "1m" } }, {}],
  [
    { serviceMonitor: { ...PLACED, ...SCRAPING } },
    scraping("ServiceMonitor zonewise-functions", "endpoints"),
    enabled("serviceMonitor"),
  ],
  [
    { podMonitor: { ...PLACED, ...SCRAPING } },
    scraping("PodMonitor zonewise-functions", "podMetricsEndpoints"),
    enabled("podMonitor"),
  ],
  [{ prometheusRule: PLACED }, placed("PrometheusRule zonewise"), enabled("prometheusRule")],
  [{ dashboards: PLACED }, placed("ConfigMap zonewise-dashboard"), enabled("dashboards")],
];

/** Objects that a value adds or leaves out, by kind and name. */
const OBJECTS: readonly (readonly [object, readonly string[]])[] = [
  [{ podDisruptionBudget: { enabled: false } }, ["PodDisruptionBudget zonewise-functions"]],
  [{ serviceAccount: { create: false } }, ACCOUNTS],
];

describe("a value of the chart", { skip: HELM.missing }, () => {
  let defaults: Fields = {};
  before(async () => void (defaults = await render({})));

  for (const [values, changes, beside] of CASES)
    it(`changes what it is for, and nothing else: ${JSON.stringify(values)}`, async () =>
      assert.deepEqual(changesOf(beside ? await render(beside) : defaults, await render(values)), changes));

  for (const [values, objects] of OBJECTS)
    it(`leaves out ${objects.join(", ")}: ${JSON.stringify(values)}`, async () => {
      const fields = await render(values);
      assert.ok(!Object.keys(fields).some((path) => objects.some((object) => path.startsWith(`${object} `))));
      const others = Object.entries(defaults).filter(
        ([path]) => !objects.some((object) => path.startsWith(`${object} `)),
      );
      assert.deepEqual(fields, Object.fromEntries(others));
    });

  it("adds the status page, which never listens on the node's network", async () => {
    const added = changesOf(
      defaults,
      await render({ statusPage: { enabled: true, resources: { limits: { cpu: 1 } } } }),
    );
    const own = (kind: string): string => `${kind} zonewise-status`;
    const kinds = ["Deployment", "Role", "RoleBinding", "ServiceAccount"];
    assert.deepEqual(
      [...new Set(Object.keys(added).map((path) => path.split(" ").slice(0, 2).join(" ")))].toSorted(),
      kinds.map(own),
    );
    assert.equal(added[`${own("Deployment")} spec.template.${CONTAINER}.resources.limits.cpu`], 1);
    assert.equal(added[`${own("RoleBinding")} subjects.0.namespace`], NAMESPACE);
    const onNode = await render({ statusPage: { enabled: true }, hostNetwork: true });
    assert.equal(onNode[`${own("Deployment")} spec.template.spec.hostNetwork`], undefined);
    assert.equal(onNode[`${own("Deployment")} spec.template.${CONTAINER}.env.1.value`], '"127.0.0.1"');
  });

  it("gives common labels to every object, and takes none of its own away", async () => {
    const added = changesOf(
      defaults,
      await render({ global: { commonLabels: { team: "a", "app.kubernetes.io/name": "other" } } }),
    );
    const paths = Object.entries(added).filter(([path]) => path.endsWith(" metadata.labels.team"));
    const objects = new Set(Object.keys(defaults).map((path) => path.split(" ").slice(0, 2).join(" ")));
    assert.equal(paths.length, objects.size);
    const functions = Object.keys(added).filter((path) =>
      / (?:zonewise-functions|rollout-operator) metadata\.labels\.app/.test(path),
    );
    assert.ok(
      !functions.some((path) => path.startsWith("Service ")),
      "the Service keeps the label that the monitor selects",
    );
  });

  it("names the certificate's Secret everywhere", async () => {
    const fields = await render({ webhooks: { selfSignedCertSecretName: "certificate" } });
    assert.deepEqual(
      Object.entries(fields).filter(([path, value]) => path.includes(SECRET) || value.includes(SECRET)),
      [],
    );
    const added = changesOf(defaults, fields);
    for (const [path, value] of Object.entries(variables("SERVER_TLS_SELF_SIGNED_CERT_SECRET_NAME", "certificate")))
      assert.equal(added[path], value);
    assert.equal(fields["Secret certificate kind"], '"Secret"');
  });

  it("leaves certificates to others", async () => {
    const fields = await render({ certificates: { enabled: false }, webhooks: { selfSignedCertSecretName: "tls" } });
    assert.deepEqual(
      Object.keys(fields).filter((path) => /^(?:Secret|CronJob zonewise-certificates|ClusterRole) /.test(path)),
      [],
    );
    assert.equal(fields[`${DEPLOYMENT} spec.template.spec.volumes.0.secret.secretName`], '"tls"');
    assert.equal(fields[`${RECONCILER} ${JOB}.${CONTAINER}.env.4.name`], '"SERVER_TLS_SELF_SIGNED_CERT_ENABLED"');
  });

  it("lets the reconciler read Secrets in each namespace", async () => {
    const names = ["token", "login"];
    const { text } = await HELM.template(NAMESPACE, {
      prometheusSecrets: { names, namespaces: ["cell-a", "cell-b"] },
    });
    const found = parseManifests(text).filter(({ metadata }) => metadata.name === "zonewise-prometheus-secrets");
    const all = [
      [{ apiGroups: [""], resources: ["secrets"], resourceNames: names, verbs: ["get"] }],
      [{ kind: "ServiceAccount", name: "zonewise-reconciler", namespace: NAMESPACE }],
    ];
    const partsOf = ({ rules, subjects }: { rules?: unknown; subjects?: unknown }): unknown => rules ?? subjects;
    assert.deepEqual(
      found.map((one) => [one.metadata.namespace, partsOf(one as object)]),
      all.flatMap((parts) => ["cell-a", "cell-b"].map((namespace) => [namespace, parts])),
    );
  });
});
