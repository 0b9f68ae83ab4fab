/** The built-in kinds: one row each. Custom resources join them when their definition is established. */

export interface Kind {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly subresources: readonly string[];
  /** Whether metadata.generation counts changes outside metadata and status. */
  readonly generation: boolean;
}

interface Options {
  readonly short?: readonly string[];
  readonly all?: boolean;
  readonly cluster?: boolean;
  readonly sub?: readonly string[];
  readonly generation?: boolean;
}

function row(groupVersion: string, kind: string, plural: string, options: Options = {}): Kind {
  const [version = "", group = ""] = groupVersion.split("/").toReversed();
  return {
    group,
    version,
    plural,
    singular: kind.toLowerCase(),
    kind,
    namespaced: !options.cluster,
    shortNames: options.short ?? [],
    categories: options.all ? ["all"] : [],
    subresources: options.sub ?? [],
    generation: options.generation ?? false,
  };
}

export const BUILT_IN: readonly Kind[] = [
  row("v1", "Namespace", "namespaces", { short: ["ns"], cluster: true, sub: ["status"] }),
  row("v1", "Node", "nodes", { short: ["no"], cluster: true, sub: ["status"] }),
  row("v1", "Pod", "pods", { short: ["po"], all: true, sub: ["status", "eviction"], generation: true }),
  row("v1", "Service", "services", { short: ["svc"], all: true, sub: ["status"] }),
  row("v1", "ConfigMap", "configmaps", { short: ["cm"] }),
  row("v1", "Secret", "secrets"),
  row("v1", "ServiceAccount", "serviceaccounts", { short: ["sa"], sub: ["token"] }),
  row("v1", "Event", "events", { short: ["ev"] }),
  row("apps/v1", "StatefulSet", "statefulsets", { short: ["sts"], all: true, sub: ["status", "scale"], generation: true }),
  row("apps/v1", "ControllerRevision", "controllerrevisions"),
  row("apps/v1", "Deployment", "deployments", { short: ["deploy"], all: true, sub: ["status", "scale"], generation: true }),
  row("apps/v1", "ReplicaSet", "replicasets", { short: ["rs"], all: true, sub: ["status", "scale"], generation: true }),
  row("batch/v1", "Job", "jobs", { all: true, sub: ["status"], generation: true }),
  row("batch/v1", "CronJob", "cronjobs", { short: ["cj"], all: true, sub: ["status"], generation: true }),
  row("coordination.k8s.io/v1", "Lease", "leases"),
  row("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", { short: ["pdb"], sub: ["status"], generation: true }),
  row("rbac.authorization.k8s.io/v1", "Role", "roles"),
  row("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
  row("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", { cluster: true }),
  row("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", { cluster: true }),
  ...["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"].map((kind) =>
    row("admissionregistration.k8s.io/v1", kind, `${kind.toLowerCase()}s`, { cluster: true, generation: true }),
  ),
  row("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", {
    short: ["crd", "crds"],
    cluster: true,
    sub: ["status"],
    generation: true,
  }),
];

/** The store's key of a kind. */
export function resourceKey(kind: Pick<Kind, "group" | "plural">): string {
  return kind.group ? `${kind.plural}.${kind.group}` : kind.plural;
}

const WITHOUT_GENERATION = new Set(BUILT_IN.filter((kind) => !kind.generation).map(resourceKey));

export function isBuiltInGroup(group: string): boolean {
  return BUILT_IN.some((kind) => kind.group === group);
}

/** Custom resources count generations too. */
export function hasGeneration(resource: string): boolean {
  return !WITHOUT_GENERATION.has(resource);
}
