/** The built-in kinds: one row each. Custom resources join them when their definition is established. */

/** A kind as it is served. */
export type Kind = ReturnType<typeof row>;

/** `all`: whether `kubectl get all` shows it; `below`: its subresources. */
function row(apiVersion: string, kind: string, options: { short?: string; all?: true; cluster?: true; below?: string[] } = {}) {
  const { short, all, cluster, below = [] } = options;
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
    namespaced: !cluster,
    shortNames: short ? [short] : [],
    categories: all ? ["all"] : [],
    subresources: below,
    /** Whether metadata.generation counts changes outside metadata and status. */
    generation: kind === "Pod" || (group !== "" && below.includes("status")),
  };
}

export const BUILT_IN: readonly Kind[] = [
  row("v1", "Namespace", { short: "ns", cluster: true, below: ["status"] }),
  row("v1", "Node", { short: "no", cluster: true, below: ["status"] }),
  row("v1", "Pod", { short: "po", all: true, below: ["status", "eviction"] }),
  row("v1", "Service", { short: "svc", all: true, below: ["status"] }),
  row("v1", "ConfigMap", { short: "cm" }),
  row("v1", "Secret"),
  row("v1", "ServiceAccount", { short: "sa", below: ["token"] }),
  row("v1", "Event", { short: "ev" }),
  row("apps/v1", "StatefulSet", { short: "sts", all: true, below: ["status", "scale"] }),
  row("apps/v1", "ControllerRevision"),
  row("apps/v1", "Deployment", { short: "deploy", all: true, below: ["status", "scale"] }),
  row("apps/v1", "ReplicaSet", { short: "rs", all: true, below: ["status", "scale"] }),
  row("batch/v1", "Job", { all: true, below: ["status"] }),
  row("batch/v1", "CronJob", { short: "cj", all: true, below: ["status"] }),
  row("coordination.k8s.io/v1", "Lease"),
  row("policy/v1", "PodDisruptionBudget", { short: "pdb", below: ["status"] }),
  ...["Role", "RoleBinding"].map((kind) => row("rbac.authorization.k8s.io/v1", kind)),
  ...["ClusterRole", "ClusterRoleBinding"].map((kind) => row("rbac.authorization.k8s.io/v1", kind, { cluster: true })),
  row("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", { cluster: true }),
  row("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", { cluster: true }),
  row("apiextensions.k8s.io/v1", "CustomResourceDefinition", { short: "crd", cluster: true, below: ["status"] }),
];

/** Custom resources count generations too. */
export function hasGeneration(resource: string): boolean {
  return BUILT_IN.find((kind) => kind.resource === resource)?.generation ?? true;
}
