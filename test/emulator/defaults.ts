/**
 * Defaults that users and Zonewise see, by resource
 * (k8s.io/kubernetes/pkg/apis/<group>/<version>/defaults.go).
 */
import { dig, fieldsOf, listOf, plainText, put, type Draft, type Fields } from "./objects.ts";
import { CRDS } from "./registry.ts";

const DEFAULTS: Readonly<Record<string, Readonly<Record<string, Fields>>>> = {
  "statefulsets.apps": {
    // An update strategy without parameters stays without parameters: SetDefaults_StatefulSet.
    spec: {
      podManagementPolicy: "OrderedReady",
      replicas: 1,
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
    },
    status: { availableReplicas: 0, replicas: 0 },
  },
  pods: { status: { phase: "Pending", qosClass: "BestEffort" } },
  namespaces: { spec: { finalizers: ["kubernetes"] }, status: { phase: "Active" } },
  "poddisruptionbudgets.policy": {
    status: { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 },
  },
  "leases.coordination.k8s.io": { spec: {} },
  // Custom resources are served at once.
  [CRDS]: { status: { conditions: [{ type: "Established", status: "True", reason: "InitialNamesAccepted" }] } },
};

/** Revisions' names depend on these defaults: they are hashes of the whole template. */
const POD_SPEC = {
  dnsPolicy: "ClusterFirst",
  restartPolicy: "Always",
  schedulerName: "default-scheduler",
  securityContext: {},
  terminationGracePeriodSeconds: 30,
};
const CONTAINER = { resources: {}, terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File" };

function withPodDefaults(spec: unknown): Fields {
  const containers = listOf(dig(spec, "containers")).map((container) => {
    const hasMutableTag = /^[^:@]*$|:latest$/.test(plainText(dig(container, "image")).replace(/^.*\//, ""));
    return { imagePullPolicy: hasMutableTag ? "Always" : "IfNotPresent", ...CONTAINER, ...fieldsOf(container) };
  });
  return { ...POD_SPEC, ...fieldsOf(spec), containers };
}

const POD_SPECS: Readonly<Record<string, readonly string[]>> = {
  pods: ["spec"],
  "statefulsets.apps": ["spec", "template", "spec"],
};

const PLAIN: Readonly<Record<string, Fields>> = {
  secrets: { type: "Opaque" },
  events: { reportingComponent: "", reportingInstance: "" },
};

/** `stringData` is written, and never read: it becomes data. */
function withStringData({ stringData, ...secret }: Draft): Draft {
  const encoded = Object.entries(fieldsOf(stringData)).map(([key, text]) => [
    key,
    Buffer.from(String(text)).toString("base64"),
  ]);
  if (encoded.length === 0) return secret;
  return { ...secret, data: { ...fieldsOf(secret["data"]), ...Object.fromEntries(encoded) } };
}

/** Returns the object with its resource's defaults filled in. */
export function withDefaults(resource: string, object: Draft): Draft {
  const filled: Draft = { ...PLAIN[resource], ...(resource === "secrets" ? withStringData(object) : object) };
  // Empty maps are left out (Go's omitempty).
  for (const field of resource === "secrets" || resource === "configmaps" ? ["data", "binaryData"] : [])
    if (Object.keys(fieldsOf(filled[field])).length === 0) delete filled[field];
  for (const [field, values] of Object.entries(DEFAULTS[resource] ?? {}))
    filled[field] = { ...values, ...fieldsOf(object[field]) };
  if (resource === "namespaces")
    return put(filled, ["metadata", "labels", "kubernetes.io/metadata.name"], object.metadata.name);
  // The API server drops what only the feature MaxUnavailableStatefulSet has.
  if (resource === "statefulsets.apps" && dig(filled, ...MAX_UNAVAILABLE) !== undefined)
    return withPodSpec(resource, put(filled, MAX_UNAVAILABLE, undefined));
  return withPodSpec(resource, filled);
}

const MAX_UNAVAILABLE = ["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"];

function withPodSpec(resource: string, filled: Draft): Draft {
  const path = POD_SPECS[resource];
  return path ? put(filled, path, withPodDefaults(dig(filled, ...path))) : filled;
}
