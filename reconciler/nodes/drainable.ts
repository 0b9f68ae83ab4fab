/**
 * Judges whether the drain of a node may begin (§17.12). Where a pod can go is the scheduler's business: what it cannot
 * place, the time limit of the drain ends. Three things are asked:
 *
 *   1. the budgets of its pods would let each of them go now, by the same decision as every disruption, and no rollout
 *      concerns another zone than the one that has pods here
 *   2. another node takes pods
 *   3. a node of its topology zone stays for its pods, or no two of them stand under one budget
 */
import { decideEviction } from "../budget/decide-eviction.ts";
import type { Reservations } from "../budget/reservation.ts";
import { findBudget, type StoredBudget } from "../budget/zpdb.ts";
import { isAllowed } from "../budget/verdict.ts";
import { LABELS } from "../model/annotations.ts";
import { isReady } from "../model/health.ts";
import { type LabelSelector, matchesSelector } from "../model/label-selector.ts";
import { listSome } from "../../infra/cut.ts";
import { describeOrphans } from "../model/orphans.ts";
import { isHealthy } from "../model/readiness.ts";
import { groupKey, isSettledByStatus, type Zone, type ZoneWithPods } from "../model/zone.ts";
import type { UpdateNode } from "./node.ts";
import { needsPlace, type NodePod } from "./node-pod.ts";
import type { GoingNode, NodeReading, PolicySnapshot, Why } from "./snapshot.ts";
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

/** At most as many pods or nodes are named. */
const MAX_NAMED = 3;

/** Why the drain would be blocked now: the first pods that would stay, and what keeps them. Undefined if none would. */
export function whyNotDrainable(facts: DrainFacts): string | undefined {
  const blocked = facts.pods.flatMap((pod) => {
    const why = pod.evictable ? (blockedByZones(pod, facts) ?? blockedByCore(pod, facts)) : undefined;
    return why === undefined ? [] : [`${nameOf(pod)}: ${why}`];
  });
  return blocked.length === 0 ? undefined : listSome(blocked, "; ", MAX_NAMED);
}

function blockedByZones(pod: NodePod, facts: DrainFacts): string | undefined {
  const budget = zoneBudgetOf(pod, facts);
  if ("reason" in budget) return isAllowed(budget) ? undefined : budget.message;
  const covered = facts.covered.get(budget.uid);
  if (!covered) return `what zone-aware budget ${budget.name} covers is not known`;
  const verdict = decideEviction({ now: facts.now, pod, budget, ...covered });
  return isAllowed(verdict) ? undefined : verdict.message;
}

function zoneBudgetOf(pod: NodePod, { budgets }: DrainFacts): ReturnType<typeof findBudget> {
  const inNamespace = budgets.filter(({ ref }) => ref.namespace === pod.namespace);
  return findBudget(pod, inNamespace, { uid: pod.uid });
}

/** A pod that is not ready may go whatever its PodDisruptionBudget allows. */
function blockedByCore(pod: NodePod, facts: DrainFacts): string | undefined {
  const found = coreBudgetsOf(pod, facts);
  const [only] = found;
  if (!isReady(pod) || !only) return undefined;
  if (found.length > 1) return `several PodDisruptionBudgets select it: ${found.map(({ name }) => name).join(", ")}`;
  return only.disruptionsAllowed > 0 ? undefined : `PodDisruptionBudget ${only.name} allows no disruption now`;
}

const coreBudgetsOf = (pod: NodePod, { coreBudgets }: DrainFacts): readonly CoreBudget[] =>
  coreBudgets.filter(({ namespace, selector }) => pod.namespace === namespace && matchesSelector(selector, pod.labels));

const nameOf = ({ namespace, name }: NodePod): string => `${namespace}/${name}`;

/**
 * Which pods of the node stand under one budget: the second would wait for the successor of the first, which may have
 * no place before the node is back. Undefined if there are none. The pods of a Deployment can come up in any zone.
 */
export function whyOneByOne(facts: DrainFacts): string | undefined {
  const bound = facts.pods.filter((pod) => needsPlace(pod) && pod.controller?.kind !== "ReplicaSet");
  const under = new Map<string, NodePod>();
  for (const pod of bound)
    for (const budget of budgetNames(pod, facts)) {
      const first = under.get(budget);
      if (first) return `${nameOf(pod)} would wait for ${nameOf(first)}: both have ${budget}`;
      under.set(budget, pod);
    }
  return undefined;
}

function budgetNames(pod: NodePod, facts: DrainFacts): string[] {
  const budget = zoneBudgetOf(pod, facts);
  const own = "reason" in budget ? [] : [`zone-aware budget ${pod.namespace}/${budget.name}`];
  return [...own, ...coreBudgetsOf(pod, facts).map(({ name }) => `PodDisruptionBudget ${pod.namespace}/${name}`)];
}

/** The zones of a group that have pods here; pods that a StatefulSet has left behind are of the zone of its name. */
const zonesHere = (pods: readonly NodePod[], zones: readonly Zone[]): readonly Zone[] =>
  zones.filter(({ uid, name, namespace }) =>
    pods.some((pod) => pod.owner === uid || (pod.madeBy === name && pod.namespace === namespace)),
  );

/** True if the group, or a StatefulSet that it has lost, may have pods here. */
export function mayHavePodsHere(pods: readonly NodePod[], zones: readonly Zone[]): boolean {
  const [first] = zones;
  const isNamed = ({ namespace, labels }: NodePod): boolean =>
    namespace === first?.namespace && labels[LABELS.rolloutGroup] === first.group;
  return pods.some((pod) => pod.madeBy !== undefined && isNamed(pod)) || zonesHere(pods, zones).length > 0;
}

/**
 * Names the first group whose rollout concerns another zone than the one that has pods here, or of which another zone
 * has lost its StatefulSet and lacks pods: the drain would disrupt a second zone. Undefined if there is none. `orphans`
 * are the orphaned zones by group.
 */
export function whyHeldByRollout(
  pods: readonly NodePod[],
  zones: readonly Zone[],
  orphans: ReadonlyMap<string, readonly ZoneWithPods[]>,
): string | undefined {
  for (const [key, group] of Map.groupBy(zones, groupKey)) {
    const left = orphans.get(key) ?? [];
    const here = zonesHere(pods, [...group, ...left]);
    const besides = ({ name }: Zone): Zone | undefined => here.find((zone) => zone.name !== name);
    for (const zone of group) {
      const own = besides(zone);
      if (own && !isSettledByStatus(zone))
        return `group ${key} is rolling out zone ${zone.name}, and zone ${own.name} has pods here`;
    }
    for (const zone of left) {
      const own = besides(zone);
      if (own && !isHealthy(zone))
        return `zone ${own.name} has pods here, and group ${key} waits for ${describeOrphans(zone)}`;
    }
  }
  return undefined;
}

/** True if `other` takes pods: it is Ready and schedulable, and stays. Its taints are the scheduler's business. */
export const canTakeOver = (node: UpdateNode, other: UpdateNode): boolean =>
  other.name !== node.name &&
  other.ready &&
  !other.unschedulable &&
  !other.terminating &&
  other.removedBy === undefined;

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
): Why | undefined {
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
