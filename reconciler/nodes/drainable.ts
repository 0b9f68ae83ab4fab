/**
 * Whether a drain would succeed now, by the decision that every disruption is judged by. Only obstacles outside the node count: the pods of the
 * node are drained in turn, each comes up elsewhere before the next one of its budget goes. So there must be another node: on the only one that takes
 * pods, the reconciler and the node API would wait for its uncordoning with all others.
 */
import type { BudgetZone } from "../budget/budget-pod.ts";
import { decideEviction } from "../budget/decide.ts";
import type { Reservations } from "../budget/reservation.ts";
import { findBudget, type StoredBudget } from "../budget/scope.ts";
import { isAllowed } from "../budget/verdict.ts";
import { blockedByCore, type CoreBudget } from "./core-budget.ts";
import type { UpdateNode } from "./node.ts";
import type { NodePod } from "./node-pod.ts";

/** What a zone-aware budget covers. */
export interface Covered {
  readonly zones: readonly BudgetZone[];
  /** Those that have not expired. */
  readonly reservations: Reservations;
}

export interface DrainFacts {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** All pods on the node. */
  readonly pods: readonly NodePod[];
  /** The zone-aware budgets of all namespaces with pods on the node. */
  readonly budgets: readonly StoredBudget[];
  /** By the UID of the budget. */
  readonly covered: ReadonlyMap<string, Covered>;
  readonly coreBudgets: readonly CoreBudget[];
  /** Another node takes pods. */
  readonly hasElsewhere: boolean;
}

/** At most as many pods are named. */
const MOST_NAMED = 3;

/** True if `other` takes pods of `node`, as far as nodes say it: it is Ready and has no taint that those pods may not tolerate. */
export function canTakeOver(node: UpdateNode, other: UpdateNode): boolean {
  const isOpen = other.ready && !other.unschedulable && !other.terminating;
  return isOpen && other.name !== node.name && other.taints.every((key) => node.taints.includes(key));
}

/** Why the node cannot be drained now: the first pods that would stay, and what keeps them. Undefined if it can. */
export function whyNotDrainable(facts: DrainFacts): string | undefined {
  if (!facts.hasElsewhere && facts.pods.some(({ evictable }) => evictable))
    return "no other node is Ready and takes pods: those of this one would have nowhere to go";
  const blocked = facts.pods.flatMap((pod) => {
    if (!pod.evictable) return [];
    const why = whyBlocked(pod, facts);
    return why === undefined ? [] : [`${pod.namespace}/${pod.name}: ${why}`];
  });
  const more = blocked.length - MOST_NAMED;
  return blocked.length === 0 ? undefined : [...blocked.slice(0, MOST_NAMED), ...(more > 0 ? [`${more} more`] : [])].join("; ");
}

function whyBlocked(pod: NodePod, facts: DrainFacts): string | undefined {
  const inNamespace = facts.budgets.filter(({ ref }) => ref.namespace === pod.namespace);
  const budget = findBudget(pod, inNamespace, { uid: pod.uid });
  if ("reason" in budget && !isAllowed(budget)) return budget.message;
  if (!("reason" in budget)) {
    const covered = facts.covered.get(budget.uid);
    if (!covered) return `what zone-aware budget ${budget.name} covers is not known`;
    const verdict = decideEviction({ now: facts.now, pod, budget, ...asIfMoved(covered, facts.pods), by: "" });
    if (!isAllowed(verdict)) return verdict.message;
  }
  return blockedByCore(pod, facts.pods, facts.coreBudgets);
}

/** The pods of the node as if they had come up elsewhere. */
function asIfMoved({ zones, reservations }: Covered, here: readonly NodePod[]): Covered {
  const moved = new Set(here.map(({ uid }) => uid));
  return {
    zones: zones.map((zone) => ({
      ...zone,
      pods: zone.pods.map((pod) => (moved.has(pod.uid) ? { ...pod, ready: true, readySince: 0 } : pod)),
    })),
    reservations: Object.fromEntries(Object.entries(reservations).filter(([, { uid }]) => !moved.has(uid))),
  };
}
