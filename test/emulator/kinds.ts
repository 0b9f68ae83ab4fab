/** The built-in kinds. CustomResourceDefinitions add more (registry.ts). */

/** A kind that the API server serves. */
export type Kind = ReturnType<typeof defineKind>;

interface KindOptions {
  readonly short?: string;
  /** Whether `kubectl get all` lists it. */
  readonly inAll?: true;
  readonly clusterScoped?: true;
  readonly subresources?: readonly string[];
}

function defineKind(apiVersion: string, kind: string, options: KindOptions = {}) {
  const { short, inAll, clusterScoped, subresources = [] } = options;
  const [version = "", group = ""] = apiVersion.split("/").toReversed();
  const plural = `${kind.toLowerCase()}s`;
  return {
    group,
    version,
    kind,
    plural,
    singular: kind.toLowerCase(),
    /** The store's key. */
    resource: group ? `${plural}.${group}` : plural,
    namespaced: !clusterScoped,
    shortNames: short ? [short] : [],
    categories: inAll ? ["all"] : [],
    subresources,
    /** Whether metadata.generation counts changes outside metadata and status. */
    generation: kind === "Pod" || (group !== "" && subresources.includes("status")),
  };
}

export const BUILT_IN: readonly Kind[] = [
  defineKind("v1", "Namespace", { short: "ns", clusterScoped: true, subresources: ["status"] }),
  defineKind("v1", "Node", { short: "no", clusterScoped: true, subresources: ["status"] }),
  defineKind("v1", "Pod", { short: "po", inAll: true, subresources: ["status", "eviction"] }),
  defineKind("v1", "Service", { short: "svc", inAll: true, subresources: ["status"] }),
  defineKind("v1", "ConfigMap", { short: "cm" }),
  defineKind("v1", "Secret"),
  defineKind("v1", "PersistentVolume", { short: "pv", clusterScoped: true, subresources: ["status"] }),
  defineKind("v1", "PersistentVolumeClaim", { short: "pvc", subresources: ["status"] }),
  defineKind("v1", "ServiceAccount", { short: "sa", subresources: ["token"] }),
  defineKind("v1", "Event", { short: "ev" }),
  defineKind("v1", "ResourceQuota", { short: "quota", subresources: ["status"] }),
  defineKind("apps/v1", "StatefulSet", { short: "sts", inAll: true, subresources: ["status", "scale"] }),
  defineKind("apps/v1", "DaemonSet", { short: "ds", inAll: true, subresources: ["status"] }),
  defineKind("apps/v1", "ControllerRevision"),
  defineKind("apps/v1", "Deployment", { short: "deploy", inAll: true, subresources: ["status", "scale"] }),
  defineKind("apps/v1", "ReplicaSet", { short: "rs", inAll: true, subresources: ["status", "scale"] }),
  defineKind("batch/v1", "Job", { inAll: true, subresources: ["status"] }),
  defineKind("batch/v1", "CronJob", { short: "cj", inAll: true, subresources: ["status"] }),
  defineKind("coordination.k8s.io/v1", "Lease"),
  defineKind("discovery.k8s.io/v1", "EndpointSlice"),
  defineKind("policy/v1", "PodDisruptionBudget", { short: "pdb", subresources: ["status"] }),
  ...["Role", "RoleBinding"].map((kind) => defineKind("rbac.authorization.k8s.io/v1", kind)),
  ...["ClusterRole", "ClusterRoleBinding"].map((kind) =>
    defineKind("rbac.authorization.k8s.io/v1", kind, { clusterScoped: true }),
  ),
  defineKind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", { clusterScoped: true }),
  defineKind("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", { clusterScoped: true }),
  defineKind("apiextensions.k8s.io/v1", "CustomResourceDefinition", {
    short: "crd",
    clusterScoped: true,
    subresources: ["status"],
  }),
];

/** True for custom resources, too. */
export function hasGeneration(resource: string): boolean {
  return BUILT_IN.find((kind) => kind.resource === resource)?.generation ?? true;
}
