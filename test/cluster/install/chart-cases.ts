/** What each value of the chart changes: the cases of chart-values.cluster.ts. */
import {
  ACCOUNTS,
  CERTIFICATES,
  CONTAINER,
  DEPLOYMENT,
  EXPRESSION,
  JOB,
  NAMESPACE,
  RECONCILER,
  expressions,
  pods,
  variables,
  webhook,
  webhooks,
} from "./chart-fields.ts";

export const CASES: readonly (readonly [object, Record<string, unknown>])[] = [
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
];

/** Objects that a value adds or leaves out, by kind and name. */
export const OBJECTS: readonly (readonly [object, readonly string[]])[] = [
  [{ podDisruptionBudget: { enabled: false } }, ["PodDisruptionBudget zonewise-functions"]],
  [{ serviceAccount: { create: false } }, ACCOUNTS],
];
