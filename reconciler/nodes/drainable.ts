/**
 * Judges whether the drain of a node may begin (§17.12). Where a pod can go is the scheduler's business: what it cannot
 * place, the time limit of the drain ends. Three things are asked:
 *
 *   1. the budgets of its pods would let each of them go now, by the same decision as every disruption
 *   2. another node takes pods
 *   3. a node of its topology zone stays for its pods, or all of them may be away at once
 *
 * Only obstacles outside the node count for 1: its own pods leave in turn, and each comes up elsewhere before the next
 * one of its budget goes.
 */
import type { Pod } from "../model/pod.ts";
import type { ZoneWithPods } from "../model/zone.ts";
import { decideEviction } from "../budget/decide-eviction.ts";
import type { Reservations } from "../budget/reservation.ts";
import { findBudget, type StoredBudget } from "../budget/scope.ts";
import { isAllowed } from "../budget/verdict.ts";
import { goneHealth, isReady, readyHealth } from "../model/health.ts";
import { type LabelSelector, matchesSelector } from "../model/label-selector.ts";
import { listSome } from "../model/list-some.ts";
import type { UpdateNode } from "./node.ts";
import { isOver, needsPlace, type NodePod } from "./node-pod.ts";
import type { GoingNode, NodeReading, PolicySnapshot, Skip } from "./snapshot.ts";
import { type Phase, PHASES } from "./state-machine.ts";

/** The zones and reservations of a zone-aware budget. */
export interface Covered {
  readonly zones: readonly ZoneWithPods[];
  /** Those that have not expired. */
  readonly reservations: Reservations;
}

/** Kubernetes' own PodDisruptionBudget. The API server decides about each eviction again. */
export interface CoreBudget {
  readonly namespace: string;
  readonly name: string;
  readonly selector: LabelSelector | undefined;
  readonly disruptionsAllowed: number;
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
}

/** At most as many pods are named. */
const MAX_NAMED = 3;

/**
 * True if `other` takes pods of `node`, as far as the Node objects show it: it is Ready and has no taint that those
 * pods may not tolerate.
 */
export function canTakeOver(node: UpdateNode, other: UpdateNode): boolean {
  const isOpen = other.ready && !other.unschedulable && !other.terminating && other.removedBy === undefined;
  return (
    isOpen && other.name !== node.name && other.taints.every(({ key }) => node.taints.some((own) => own.key === key))
  );
}

/** Why the drain would be blocked now: the first pods that would stay, and what keeps them. Undefined if none is. */
export function whyNotDrainable(facts: DrainFacts): string | undefined {
  const blocked = facts.pods.flatMap((pod) => {
    const why = whyBlocked(pod, facts, []);
    return why === undefined ? [] : [`${nameOf(pod)}: ${why}`];
  });
  return blocked.length === 0 ? undefined : listSome(blocked, "; ", MAX_NAMED);
}

/**
 * Why a pod of the node would wait for the successor of another, if none of them had a place before the node is back.
 * Undefined if all may be away at once. The pods of a Deployment can come up in any zone.
 */
export function whyOneByOne(facts: DrainFacts): string | undefined {
  const bound = facts.pods.filter((pod) => needsPlace(pod) && pod.controller?.kind !== "ReplicaSet");
  for (const pod of bound) {
    const away = bound.filter((other) => other !== pod);
    const why = away.length > 0 ? whyBlocked(pod, facts, away) : undefined;
    if (why !== undefined)
      return `${nameOf(pod)} would wait for ${listSome(away.map(nameOf), ", ", MAX_NAMED)}: ${why}`;
  }
  return undefined;
}

/**
 * For a start: all active nodes count that have not come back from their reboot. The state of a node that has come
 * back shows whether it takes pods.
 */
export const goingBeforeStart = (active: readonly GoingNode[]): readonly GoingNode[] =>
  goingOf(active, ["ahead", "draining", "rebooting"]);

/** For a reboot: nodes that wait for their own reboot do not count, as they would wait for each other. */
export const goingBeforeReboot = (active: readonly GoingNode[]): readonly GoingNode[] =>
  goingOf(active, ["draining", "rebooting"]);

const goingOf = (active: readonly GoingNode[], disruptions: readonly Phase["disruption"][]): readonly GoingNode[] =>
  active.filter(({ phase }) => disruptions.includes(PHASES[phase].disruption));

/**
 * Why no node stays for the pods of the node, beside those that are going. At least one of its topology zone stays, so
 * that drains do not wait for each other's nodes. A zone of one node needs pods that may all be away at once, unless
 * the policy lets the reboot end a drain that does not end by itself. If no other node at all took pods, the reconciler
 * and the node API would wait for this one as well.
 */
export function whyNoPlace(
  { name, zone }: UpdateNode,
  { others, oneByOne }: NodeReading,
  { going, policy }: { readonly going: readonly GoingNode[]; readonly policy: PolicySnapshot["policy"] },
): Omit<Skip, "node"> | undefined {
  const free = others?.filter((other) => !going.some(({ node }) => node === other.name));
  if (!free || free.some((other) => other.zone === zone)) return undefined;
  const isLast = free.length === 0;
  const where = zone === "" || isLast ? "no other node" : `no other node of zone ${zone}`;
  const beside = going.filter((one) => one.node !== name && (isLast || (one.zone ?? "") === zone));
  if (beside.length > 0) {
    const names = listSome(
      beside.map(({ node }) => node),
      ", ",
      MAX_NAMED,
    );
    return { reason: "LimitReached", message: `${where} takes its pods until ${names} is back in service` };
  }
  if (isLast)
    return { reason: "DrainBlocked", message: `${where} is Ready and takes pods: its own have nowhere to go` };
  return oneByOne === undefined || policy.drain.onTimeout === "Reboot"
    ? undefined
    : { reason: "NoPlaceForPods", message: `${where} is Ready and takes pods, and ${oneByOne}` };
}

const nameOf = ({ namespace, name }: NodePod): string => `${namespace}/${name}`;

/** Why the pod could not be evicted, with the successors of `away` not ready. */
function whyBlocked(pod: NodePod, facts: DrainFacts, away: readonly NodePod[]): string | undefined {
  if (!pod.evictable) return undefined;
  const inNamespace = facts.budgets.filter(({ ref }) => ref.namespace === pod.namespace);
  const budget = findBudget(pod, inNamespace, { uid: pod.uid });
  if ("reason" in budget && !isAllowed(budget)) return budget.message;
  if (!("reason" in budget)) {
    const covered = facts.covered.get(budget.uid);
    if (!covered) return `what zone-aware budget ${budget.name} covers is not known`;
    const verdict = decideEviction({ now: facts.now, pod, budget, ...asIfMoved(covered, facts.pods, away) });
    if (!isAllowed(verdict)) return verdict.message;
  }
  return blockedByCore(pod, facts, away);
}

/** The pods of the node as if they had come up elsewhere, except those that are away. */
function asIfMoved({ zones, reservations }: Covered, here: readonly NodePod[], away: readonly NodePod[]): Covered {
  const gone = new Set(away.map(({ uid }) => uid));
  const moved = new Set(here.map(({ uid }) => uid));
  return {
    zones: zones.map((zone) => ({ ...zone, pods: zone.pods.map(asNow) })),
    reservations: Object.fromEntries(Object.entries(reservations).filter(([, { uid }]) => !moved.has(uid))),
  };

  function asNow(pod: Pod): Pod {
    if (gone.has(pod.uid)) return isReady(pod) ? { ...pod, health: goneHealth(pod.health, undefined) } : pod;
    return moved.has(pod.uid) ? { ...pod, health: readyHealth(0), readySince: 0 } : pod;
  }
}

/** A budget may be spent on a pod of the node that is not ready: that one comes up elsewhere. */
function blockedByCore(pod: NodePod, facts: DrainFacts, away: readonly NodePod[]): string | undefined {
  if (!isReady(pod)) return undefined;
  const found = facts.coreBudgets.filter((budget) => covers(budget, pod));
  const [only] = found;
  if (!only) return undefined;
  if (found.length > 1) return `several PodDisruptionBudgets select it: ${found.map(({ name }) => name).join(", ")}`;
  const isSpentHere = facts.pods.some((other) => !isReady(other) && !isOver(other) && covers(only, other));
  const lost = away.filter((other) => isReady(other) && covers(only, other)).length;
  const allowed = only.disruptionsAllowed + (isSpentHere ? 1 : 0);
  return allowed > lost ? undefined : `PodDisruptionBudget ${only.name} allows no disruption now`;
}

const covers = ({ namespace, selector }: CoreBudget, pod: NodePod): boolean =>
  pod.namespace === namespace && matchesSelector(selector, pod.labels);
