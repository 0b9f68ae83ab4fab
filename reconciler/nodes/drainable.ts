/**
 * Judges whether a drain would succeed now, by the same decision as every disruption. Only obstacles outside the node
 * count: the pods of the node are drained in turn, each comes up elsewhere before the next one of its budget goes. So
 * there must be another node: if the node were the only one that takes pods, the reconciler and the node API would
 * wait for its uncordoning, too.
 */
import type { BudgetPod, BudgetZone } from "../budget/budget-pod.ts";
import { decideEviction } from "../budget/decide-eviction.ts";
import type { Reservations } from "../budget/reservation.ts";
import { findBudget, type StoredBudget } from "../budget/scope.ts";
import { isAllowed } from "../budget/verdict.ts";
import { blockedByCore, type CoreBudget } from "./core-budget.ts";
import type { UpdateNode } from "./node.ts";
import { needsPlace, type NodePod } from "./node-pod.ts";
import type { Places } from "./places.ts";

/** The zones and reservations of a zone-aware budget. */
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
  /** The places of each pod that needs one, by its UID; absent for a node of which only the budgets are judged. */
  readonly places?: ReadonlyMap<string, Places>;
}

/** At most as many pods are named. */
const MAX_NAMED = 3;

/**
 * True if `other` takes pods of `node`, as far as the Node objects show it: it is Ready and has no taint that those
 * pods may not tolerate.
 */
export function canTakeOver(node: UpdateNode, other: UpdateNode): boolean {
  const isOpen = other.ready && !other.unschedulable && !other.terminating;
  return (
    isOpen && other.name !== node.name && other.taints.every(({ key }) => node.taints.some((own) => own.key === key))
  );
}

/**
 * Why the node cannot be drained now: the first pods that would stay, and the reasons that keep them. Undefined if it
 * can be.
 */
export function whyNotDrainable(facts: DrainFacts): string | undefined {
  if (!facts.hasElsewhere && facts.pods.some(({ evictable }) => evictable))
    return "no other node is Ready and takes pods: those of this one would have nowhere to go";
  const blocked = facts.pods.flatMap((pod) => {
    const why = whyBlocked(pod, facts, []);
    return why === undefined ? [] : [`${nameOf(pod)}: ${why}`];
  });
  const more = blocked.length - MAX_NAMED;
  return blocked.length === 0
    ? undefined
    : [...blocked.slice(0, MAX_NAMED), ...(more > 0 ? [`${more} more`] : [])].join("; ");
}

export const nameOf = ({ namespace, name }: NodePod): string => `${namespace}/${name}`;

/** The pods that fit on no other node, whatever its state: their successors wait until this node is back. */
export function captivesOf({ pods, places }: DrainFacts): readonly NodePod[] {
  return pods.filter((pod) => {
    const found = needsPlace(pod) ? places?.get(pod.uid) : undefined;
    return found !== undefined && found.open.length + found.closed.size === 0;
  });
}

export interface Lost {
  /** Pods whose successors wait in any case. */
  readonly before?: readonly NodePod[];
  /** Those that are judged. */
  readonly more: readonly NodePod[];
}

/**
 * The first pod that could not be evicted while the successors of `more` wait, but could be otherwise; with the reason
 * that would keep it.
 */
export function findWaiting(
  facts: DrainFacts,
  { before = [], more }: Lost,
): { readonly pod: NodePod; readonly why: string } | undefined {
  for (const pod of more.length > 0 ? facts.pods : []) {
    const why = whyBlocked(pod, facts, [...before, ...more]);
    if (why !== undefined && whyBlocked(pod, facts, before) === undefined) return { pod, why };
  }
  return undefined;
}

/** Why the pod could not be evicted, with the successors of `down` not ready. */
function whyBlocked(pod: NodePod, facts: DrainFacts, down: readonly NodePod[]): string | undefined {
  if (!pod.evictable) return undefined;
  const inNamespace = facts.budgets.filter(({ ref }) => ref.namespace === pod.namespace);
  const budget = findBudget(pod, inNamespace, { uid: pod.uid });
  if ("reason" in budget && !isAllowed(budget)) return budget.message;
  const lost = down.filter(({ uid }) => uid !== pod.uid);
  if (!("reason" in budget)) {
    const covered = facts.covered.get(budget.uid);
    if (!covered) return `what zone-aware budget ${budget.name} covers is not known`;
    const verdict = decideEviction({ now: facts.now, pod, budget, ...asIfMoved(covered, facts.pods, lost), by: "" });
    if (!isAllowed(verdict)) return verdict.message;
  }
  return blockedByCore(pod, { here: facts.pods, lost }, facts.coreBudgets);
}

/** The pods of the node as if they had come up elsewhere, except the lost ones. */
function asIfMoved({ zones, reservations }: Covered, here: readonly NodePod[], lost: readonly NodePod[]): Covered {
  const gone = new Set(lost.map(({ uid }) => uid));
  const moved = new Set(here.map(({ uid }) => uid));
  return {
    zones: zones.map((zone) => ({ ...zone, pods: zone.pods.map(asNow) })),
    reservations: Object.fromEntries(Object.entries(reservations).filter(([, { uid }]) => !moved.has(uid))),
  };

  function asNow(pod: BudgetPod): BudgetPod {
    if (gone.has(pod.uid)) return { ...pod, ready: false };
    return moved.has(pod.uid) ? { ...pod, ready: true, readySince: 0 } : pod;
  }
}
