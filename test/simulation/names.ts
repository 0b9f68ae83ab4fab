/** The names of the group's objects, and of their kinds. */
export const NAMESPACE = "zonewise";
/** A second namespace, with objects of the same names. */
export const TWIN = "zonewise-twin";
export const GROUP = "ingester";
/** A second group, which only incidents make. */
export const OTHER_GROUP = "querier";
export const BUDGET = "ingester";
export const BUDGETS = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";
export const LEASES = "leases.coordination.k8s.io";
export const ROLLOUT_GROUPS = "rolloutgroups.zonewise.dev";

/** The StatefulSet of a pod, by the pod's name, and its ordinal in it. */
export const zoneOf = (pod: string): string => pod.replace(/-\d+$/, "");
export const ordinalOf = (pod: string): number => Number(/\d+$/.exec(pod)?.[0]);

/** What judges evictions: a webhook that pins them to a pod, or one that cannot. */
export const [PINNING, VALIDATING] = ["/admission/mutate-pod-eviction", "/admission/pod-eviction"];
export const EVICTION_PATHS: ReadonlySet<string> = new Set([PINNING, VALIDATING]);
