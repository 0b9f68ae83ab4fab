/**
 * What the original installs, as facts: by its jsonnet library or its manifests, and by its chart.
 *
 * Names, labels, paths, rules, policies and flags are those of the jsonnet library and of the Helm chart of
 * grafana/rollout-operator 0.36 to 0.40 (operations/rollout-operator-tests/*-generated.yaml,
 * charts/rollout-operator/templates/).
 */
import { stringify } from "yaml";
import type { Manifest } from "../stage/manifests.ts";

/** The Secret that Zonewise knows. */
export const SECRET = "rollout-operator-self-signed-certificate";

/** How one way of installing it names things. */
export interface Shape {
  /** Its Deployment and its Service. */
  readonly operator: string;
  /** Of its pods. */
  readonly labels: Readonly<Record<string, string>>;
  readonly secret: string;
  /** Its Helm release; absent if it is applied. */
  readonly release?: string;
  /** Its flags, besides the namespace. */
  readonly flags: readonly string[];
  /** Names of roles, each with its binding. */
  readonly roles: Readonly<Record<string, string>>;
  readonly clusterRoles: (namespace: string) => Readonly<Record<string, string>>;
}

const ORIGINAL = "rollout-operator";
export const MANIFESTS: Shape = {
  operator: ORIGINAL,
  labels: { name: ORIGINAL },
  secret: SECRET,
  flags: [
    "-server-tls.enabled=true",
    "-use-zone-tracker=true",
    "-zone-tracker.config-map-name=rollout-operator-zone-tracker",
  ],
  roles: {
    [`${ORIGINAL}-role`]: `${ORIGINAL}-rolebinding`,
    [`${ORIGINAL}-webhook-cert-secret-role`]: `${ORIGINAL}-webhook-cert-secret-rolebinding`,
  },
  clusterRoles: (namespace) => ({
    [`${ORIGINAL}-${namespace}-webhook-cert-update-role`]: `${ORIGINAL}-${namespace}-webhook-cert-secret-rolebinding`,
  }),
};
/** The cluster roles of a release have no namespace in their names: one is enough for the tests. */
export const CHART: Shape = {
  operator: `cell-${ORIGINAL}`,
  labels: { "app.kubernetes.io/name": ORIGINAL, "app.kubernetes.io/instance": "cell" },
  secret: "certificate",
  release: "cell",
  flags: ["-server-tls.enabled=true", "-server-tls.self-signed-cert.secret-name=certificate"],
  roles: {
    [`cell-${ORIGINAL}`]: `cell-${ORIGINAL}`,
    [`cell-${ORIGINAL}-webhook-role`]: `cell-${ORIGINAL}-webhook-rolebinding`,
  },
  clusterRoles: () => ({ [`cell-${ORIGINAL}-webhook-clusterrole`]: `cell-${ORIGINAL}-webhook-clusterrolebinding` }),
};

const STATEFUL_SETS = {
  operations: ["UPDATE"],
  apiGroups: ["apps"],
  apiVersions: ["v1"],
  resources: ["statefulsets", "statefulsets/scale"],
  scope: "Namespaced",
};
const EVICTIONS = {
  operations: ["CREATE"],
  apiGroups: [""],
  apiVersions: ["v1"],
  resources: ["pods/eviction"],
  scope: "Namespaced",
};
const BUDGETS = {
  operations: ["CREATE", "UPDATE"],
  apiGroups: ["rollout-operator.grafana.com"],
  apiVersions: ["v1"],
  resources: ["zoneawarepoddisruptionbudgets"],
  scope: "Namespaced",
};

/** Each webhook's kind of configuration, rule and side effects. */
const WEBHOOKS = {
  "prepare-downscale": ["MutatingWebhookConfiguration", STATEFUL_SETS, "NoneOnDryRun"],
  "no-downscale": ["ValidatingWebhookConfiguration", STATEFUL_SETS, "None"],
  "pod-eviction": ["ValidatingWebhookConfiguration", EVICTIONS, "None"],
  "zpdb-validation": ["ValidatingWebhookConfiguration", BUDGETS, "None"],
} as const;
export const PATHS = new Set(Object.keys(WEBHOOKS).map((name) => `/admission/${name}`));

function buildConfiguration(
  name: keyof typeof WEBHOOKS,
  { operator }: Shape,
  { namespace, port }: { readonly namespace: string; readonly port: number },
): object {
  const [kind, rule, sideEffects] = WEBHOOKS[name];
  const labels = { "grafana.com/inject-rollout-operator-ca": "true", "grafana.com/namespace": namespace };
  const webhook = {
    name: `${name}-${namespace}.grafana.com`,
    clientConfig: { service: { name: operator, namespace, path: `/admission/${name}`, port } },
    rules: [rule],
    admissionReviewVersions: ["v1"],
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
    failurePolicy: "Fail",
    sideEffects,
  };
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind,
    metadata: { name: `${name}-${namespace}`, labels },
    webhooks: [webhook],
  };
}

/** Fields of the two specs, and of the one status that has any. */
const FIELDS = {
  ReplicaTemplate: { spec: { labelSelector: "string", replicas: "integer" }, status: { replicas: "integer" } },
  ZoneAwarePodDisruptionBudget: {
    spec: {
      crossZoneEvictionDelay: "string",
      maxUnavailable: "integer",
      maxUnavailablePercentage: "integer",
      podNamePartitionRegex: "string",
      podNameRegexGroup: "integer",
    },
  },
} as const;
const SELECTOR = {
  type: "object",
  required: ["matchLabels"],
  properties: { matchLabels: { type: "object", additionalProperties: { type: "string" } } },
};

/** Definitions of its own; in its jsonnet output, not among the templates of its chart. */
function buildDefinition(kind: keyof typeof FIELDS): Manifest & { readonly spec: object } {
  const plural = `${kind.toLowerCase()}s`;
  const isBudget = kind === "ZoneAwarePodDisruptionBudget";
  const parts = Object.entries(FIELDS[kind]).map(([part, fields]) => {
    const types = Object.entries(fields).map(([name, type]) => [name, { type }]);
    const properties = { ...Object.fromEntries(types), ...(isBudget && { selector: SELECTOR }) };
    return [part, { type: "object", properties, ...(isBudget && { required: ["selector"] }) }];
  });
  const scale = {
    specReplicasPath: ".spec.replicas",
    statusReplicasPath: ".status.replicas",
    labelSelectorPath: ".spec.labelSelector",
  };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.rollout-operator.grafana.com` },
    spec: {
      group: "rollout-operator.grafana.com",
      scope: "Namespaced",
      names: { kind, plural, singular: kind.toLowerCase(), ...(isBudget && { shortNames: ["zpdb"] }) },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", properties: Object.fromEntries(parts) } },
          subresources: { status: {}, ...(!isBudget && { scale }) },
        },
      ],
    },
  };
}
export const DEFINITIONS = (["ReplicaTemplate", "ZoneAwarePodDisruptionBudget"] as const).map(buildDefinition);

function buildRights(shape: Shape, namespace: string): object[] {
  const account = { kind: "ServiceAccount", name: shape.operator, namespace };
  const pair = (prefix: string, [role, binding]: readonly string[], metadata: object): object[] => [
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: `${prefix}Role`,
      metadata: { name: role, ...metadata },
      rules: [],
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: `${prefix}RoleBinding`,
      metadata: { name: binding, ...metadata },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: `${prefix}Role`, name: role },
      subjects: [account],
    },
  ];
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: shape.operator, namespace } },
    ...Object.entries(shape.roles).flatMap((names) => pair("", names, { namespace })),
    ...Object.entries(shape.clusterRoles(namespace)).flatMap((names) =>
      pair("Cluster", names, { labels: { "migration-test": namespace } }),
    ),
  ];
}

/** Its manifests. The Service has the type that leads the API server to `port` of this machine. */
export function buildOriginal(shape: Shape, place: { readonly namespace: string; readonly port: number }): Manifest[] {
  const { operator, labels, flags } = shape;
  const { namespace } = place;
  const args = [`-kubernetes.namespace=${namespace}`, ...flags];
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: operator, namespace },
    spec: {
      type: "ExternalName",
      externalName: "localhost",
      selector: labels,
      ports: [{ name: "https", port: 443, targetPort: 8443, protocol: "TCP" }],
    },
  };
  const deployment = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: operator, namespace },
    spec: {
      replicas: 1,
      minReadySeconds: 10,
      selector: { matchLabels: labels },
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      template: { metadata: { labels }, spec: { containers: [{ name: ORIGINAL, image: ORIGINAL, args }] } },
    },
  };
  return [
    ...(shape.release === undefined ? DEFINITIONS : []),
    ...buildRights(shape, namespace),
    service,
    deployment,
    ...Object.keys(WEBHOOKS).map((name) => buildConfiguration(name as keyof typeof WEBHOOKS, shape, place)),
  ] as Manifest[];
}

/** A budget and a template of a zone, which its jsonnet output has as well. They select nothing here. */
export const buildObjects = (namespace: string): Manifest[] =>
  [
    { kind: "ReplicaTemplate", spec: { labelSelector: "name=nobody" } },
    { kind: "ZoneAwarePodDisruptionBudget", spec: { selector: { matchLabels: { name: "nobody" } } } },
  ].map((object) => ({
    apiVersion: "rollout-operator.grafana.com/v1",
    metadata: { name: "nobody", namespace },
    ...object,
  }));

/** As jsonnet's output is: one file. */
export const printManifests = (manifests: readonly Manifest[]): string =>
  manifests.map((manifest) => stringify(manifest)).join("---\n");

/** The words of docs/migrate/rollout-operator.md that a reader replaces. */
export const namesOf = ({ operator, labels, secret, release = "" }: Shape, namespace: string) => ({
  NAMESPACE: namespace,
  OPERATOR: operator,
  SELECTOR: Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(","),
  SECRET: secret,
  RELEASE: release,
  SOURCE: "source.yaml",
});
