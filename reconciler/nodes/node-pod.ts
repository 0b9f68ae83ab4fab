/** A pod on a node that is to be drained. */
import type { PodObject } from "../../infra/kubernetes/resources.ts";
import { type BudgetPod, readBudgetPod } from "../budget/budget-pod.ts";
import { findEvictable } from "./evictable.ts";

export interface NodePod extends BudgetPod {
  /** A drain evicts it. */
  readonly evictable: boolean;
}

export function readNodePod(object: PodObject): NodePod {
  return { ...readBudgetPod(object), evictable: findEvictable([object]).length > 0 };
}

export const isOver = ({ phase }: Pick<NodePod, "phase">): boolean => phase === "Succeeded" || phase === "Failed";
