/**
 * Kubernetes' own PodDisruptionBudgets, as far as a drain depends on them: the API server decides about each eviction
 * again.
 */
import { matchesSelector, type LabelSelector } from "../model/label-selector.ts";
import { isOver, type NodePod } from "./node-pod.ts";

export interface CoreBudget {
  readonly namespace: string;
  readonly name: string;
  readonly selector: LabelSelector | undefined;
  readonly disruptionsAllowed: number;
  /** As many pods are healthy as it asks for: a pod that is not ready may go. */
  readonly isMet: boolean;
  /** `unhealthyPodEvictionPolicy: AlwaysAllow`. */
  readonly allowsUnhealthy: boolean;
}

/**
 * The assumption of the decision: the other pods of the node have moved, except the lost ones, which come up nowhere.
 */
export interface Displaced {
  readonly here: readonly NodePod[];
  readonly lost: readonly NodePod[];
}

/**
 * Why the budgets would not let the pod go, even after the other pods of the node have moved; undefined if they would.
 * The budget may be spent on a pod of the node that is not ready; it comes up elsewhere unless it is lost.
 */
export function blockedByCore(
  pod: NodePod,
  { here, lost }: Displaced,
  budgets: readonly CoreBudget[],
): string | undefined {
  // https://kubernetes.io/docs/concepts/workloads/pods/disruptions/: pods that are over or terminating are not counted,
  // Pending ones need no budget.
  if (isOver(pod) || pod.terminating || pod.phase === "Pending") return undefined;
  const found = budgets.filter((budget) => covers(budget, pod));
  const [only] = found;
  if (!only) return undefined;
  if (found.length > 1) return `several PodDisruptionBudgets select it: ${found.map(({ name }) => name).join(", ")}`;
  const isGone = ({ uid }: NodePod): boolean => uid === pod.uid || lost.some((one) => one.uid === uid);
  const isSpentHere = here.some((other) => !isGone(other) && !other.ready && !isOver(other) && covers(only, other));
  const lostHere = lost.filter((other) => other.ready && covers(only, other)).length;
  const isAllowed = (isSpentHere && lostHere === 0) || allows(only, pod, lostHere);
  return isAllowed ? undefined : `PodDisruptionBudget ${only.name} allows no disruption now`;
}

/** True if the budget allows the eviction with so many of its healthy pods lost. */
const allows = (
  { disruptionsAllowed, allowsUnhealthy, isMet }: CoreBudget,
  { ready }: NodePod,
  lost: number,
): boolean => disruptionsAllowed > lost || (!ready && (allowsUnhealthy || (isMet && lost === 0)));

const covers = ({ namespace, selector }: CoreBudget, pod: NodePod): boolean =>
  pod.namespace === namespace && matchesSelector(selector, pod.labels);
