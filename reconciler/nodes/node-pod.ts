/** A pod on a node that is to be drained. */
import type { PodObject } from "../../infra/kubernetes/resources.ts";
import type { PlacedPod } from "../../infra/kubernetes/scheduling.ts";
import { type BudgetPod, readBudgetPod } from "../budget/budget-pod.ts";
import { findEvictable } from "./evictable.ts";
import { type PodNeeds, readNeeds } from "./pod-needs.ts";

export interface NodePod extends BudgetPod {
  /** A drain evicts it. */
  readonly evictable: boolean;
  readonly needs: PodNeeds;
}

export function readNodePod(object: PlacedPod): NodePod {
  const pod: PodObject = object;
  return { ...readBudgetPod(pod), evictable: findEvictable([pod]).length > 0, needs: readNeeds(object) };
}

export const isOver = ({ phase }: Pick<NodePod, "phase">): boolean => phase === "Succeeded" || phase === "Failed";

/** A drain evicts it, and its controller makes another one, which needs a place. */
export const needsPlace = (pod: NodePod): boolean =>
  pod.evictable && pod.controller !== undefined && !isOver(pod) && !pod.terminating;
