/** Kubernetes' own PodDisruptionBudgets, as far as a drain depends on them: the API server decides about each eviction again. */
import { matchesSelector, type LabelSelector } from "./label-selector.ts";
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
 * Why the budgets would not let the pod go, even after the other pods of the node have moved; undefined if they would. A pod of the node that is not
 * ready may be what the budget is spent on, and comes up elsewhere.
 */
export function blockedByCore(pod: NodePod, here: readonly NodePod[], budgets: readonly CoreBudget[]): string | undefined {
  // https://kubernetes.io/docs/concepts/workloads/pods/disruptions/: pods that are over or terminating are not counted, Pending ones need no budget.
  if (isOver(pod) || pod.terminating || pod.phase === "Pending") return undefined;
  const found = budgets.filter((budget) => covers(budget, pod));
  const [only] = found;
  if (!only) return undefined;
  if (found.length > 1) return `several PodDisruptionBudgets select it: ${found.map(({ name }) => name).join(", ")}`;
  const isSpentHere = here.some((other) => other.uid !== pod.uid && !other.ready && !isOver(other) && covers(only, other));
  return isSpentHere || allows(only, pod) ? undefined : `PodDisruptionBudget ${only.name} allows no disruption now`;
}

const allows = ({ disruptionsAllowed, allowsUnhealthy, isMet }: CoreBudget, { ready }: NodePod): boolean =>
  disruptionsAllowed > 0 || (!ready && (allowsUnhealthy || isMet));

const covers = ({ namespace, selector }: CoreBudget, pod: NodePod): boolean =>
  pod.namespace === namespace && matchesSelector(selector, pod.labels);
