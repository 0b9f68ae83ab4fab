/** The names of the group's objects, and of their kinds. */
import type { KubeObject } from "../emulator/store.ts";

export const NAMESPACE = "zonewise";
export const GROUP = "ingester";
export const BUDGET = "ingester";
export const BUDGETS = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";
export const ZONE_TRACKER = "rollout-operator-zone-tracker";

/** True for a pod that ends and whose StatefulSet was deleted without it: no other one takes it. */
export const isOrphan = ({ metadata: { deletionTimestamp, ownerReferences = [] } }: KubeObject): boolean =>
  deletionTimestamp !== undefined && ownerReferences.length === 0;

/** The StatefulSet of a pod, by the pod's name, and its ordinal in it. */
export const zoneOf = (pod: string): string => pod.replace(/-\d+$/, "");
export const ordinalOf = (pod: string): number => Number(/\d+$/.exec(pod)?.[0]);
