/** A pod on a node that is to be drained. */
import type { Pod as PodObject } from "../../infra/kubernetes/resources.ts";
import { type BudgetPod, readBudgetPod } from "../budget/budget-pod.ts";

export interface NodePod extends BudgetPod {
  /** A static pod of the node, which the API server only mirrors. */
  readonly mirror: boolean;
}

export function readNodePod(object: PodObject): NodePod {
  return { ...readBudgetPod(object), mirror: object.metadata?.annotations?.["kubernetes.io/config.mirror"] !== undefined };
}

export const isOver = ({ phase }: Pick<NodePod, "phase">): boolean => phase === "Succeeded" || phase === "Failed";

/** True if a drain evicts the pod: all pods that are over, otherwise neither those of DaemonSets nor static ones. Pods without a controller and with local data are evicted. */
export function isEvictable(pod: Pick<NodePod, "phase" | "controller" | "mirror">): boolean {
  return isOver(pod) || (pod.controller?.kind !== "DaemonSet" && !pod.mirror);
}
