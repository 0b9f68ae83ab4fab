/**
 * Decides whether a pod may be disrupted now (§5.1), for the eviction webhook and the rollout alike, by the unavailable
 * pods that its eviction depends on (§5.5).
 */
import { firstOf, type Rule } from "../../infra/rules.ts";
import { listSome } from "../../infra/cut.ts";
import { isReady, servesNothing, isTerminating } from "../model/health.ts";
import { moveToFront, ordinalOf } from "../model/order.ts";
import { findExcess } from "../model/refused-group.ts";
import type { ZoneWithPods } from "../model/zone.ts";
import { ageOf, type Reservation, reservationOf, firstLeaving, type Reservations } from "./reservation.ts";
import { TOO_FEW_ZONES, verdict, type Verdict, type VerdictReason } from "./verdict.ts";
import { allowedUnavailable, type Budget } from "./zpdb.ts";
import { countMissing, isIdleSurplus, isSurplus } from "../model/readiness.ts";
import type { Pod } from "../model/pod.ts";

export interface EvictionSnapshot {
  readonly now: number;
  readonly pod: Pod;
  readonly budget: Budget;
  /** The StatefulSets that the budget selects, in byte order of their names. */
  readonly zones: readonly ZoneWithPods[];
  /** Reservations that have not expired. */
  readonly reservations: Reservations;
  /** Set when the rollout asks: how many pods of the zone it may have unavailable at once, at least 1. */
  readonly rollout?: { readonly maxUnavailable: number } | undefined;
  /** The disruption is pinned to no UID: it may reach a successor of the pod. */
  readonly unpinned?: boolean | undefined;
}

type EvictionRule = Rule<[snapshot: EvictionSnapshot], Verdict>;

/**
 * The zone of the pod. A pod that no StatefulSet has, or one that is gone, is of what is left of that (orphans.ts), or of
 * the StatefulSet that was created again under its name.
 */
const ownZone = ({ pod, zones }: EvictionSnapshot): ZoneWithPods | undefined =>
  zones.find((zone) => zone.uid === pod.owner) ??
  zones.find(({ orphaned, pods }) => orphaned && pods.some(({ uid }) => uid === pod.uid)) ??
  zones.find(({ name }) => name === pod.madeBy);

const ownerKnown: EvictionRule = (snapshot) => {
  const { pod, budget } = snapshot;
  const { controller } = pod;
  const zone = ownZone(snapshot);
  const ownerNotFound = (message: string): Verdict => about(snapshot, "OwnerNotFound", message);
  if (zone && zone.orphaned !== "outside") return undefined;
  if (!controller) return ownerNotFound("unable to find a StatefulSet pod owner");
  if (controller.kind !== "StatefulSet")
    return ownerNotFound(
      `pod owner is not a StatefulSet - ${pod.name} has owner ${controller.name} (${controller.kind})`,
    );
  return ownerNotFound(
    `unable to find StatefulSet ${controller.name} by name: it is not among those that zoned pod disruption budget ${budget.name} selects`,
  );
};

const groupWithinBounds: EvictionRule = (snapshot) => {
  const zone = ownZone(snapshot);
  const excess = zone && findExcess(zone, snapshot.zones);
  return excess && about(snapshot, excess.reason, excess.message);
};

/** Milliseconds. The API server retries a conflicting eviction for 10 s and looks the pod up by name each time. */
const RETRIED_FOR_MS = 15_000;

/**
 * A pod that was allowed to go a moment ago is not allowed to go again, unless both disruptions may share its
 * reservation.
 */
const notTwice: EvictionRule = (snapshot) => {
  const { pod, reservations } = snapshot;
  const found = reservationOf(pod, reservations);
  if (!found || mayShare(found, snapshot)) return undefined;
  const owner = found.kind === "eviction" ? "an eviction" : "the rollout";
  return about(
    snapshot,
    "AllowedAlready",
    `${pod.name} was allowed to go a moment ago, for ${owner}; try again once it is gone`,
  );
};

/**
 * True if another disruption of the pod may use its reservation. The rollout and an eviction must not share one. Two
 * evictions may if both are pinned to the pod's UID: an unpinned one might delete the pod's successor. Once the API
 * server no longer retries, an earlier eviction does not count. The rollout may delete its pod as long as its
 * reservation lasts, so an unpinned eviction waits for the end of it.
 */
function mayShare(found: Reservation, { now, rollout, unpinned }: EvictionSnapshot): boolean {
  const isEviction = found.kind === "eviction";
  if (ageOf(found, now) >= RETRIED_FOR_MS && (isEviction || !unpinned)) return true;
  const sameKind = isEviction === (rollout === undefined);
  return sameKind && !unpinned && found.pinned;
}

/** A configured 0 gives way to the rollout's own limit, in partition mode to 1 (§1.5.7, §5.1.7). */
function maxUnavailable(snapshot: EvictionSnapshot): number {
  const { budget, rollout } = snapshot;
  const zone = ownZone(snapshot);
  const allowed = allowedUnavailable(budget, { spec: zone?.replicas, status: zone?.status.replicas ?? 0 });
  if (allowed > 0 || !rollout) return allowed;
  return budget.partitionOf ? 1 : rollout.maxUnavailable;
}

const aboveZero: EvictionRule = (snapshot) =>
  maxUnavailable(snapshot) === 0 ? about(snapshot, "MaxUnavailableZero", "max unavailable = 0") : undefined;

const severalZones: EvictionRule = (snapshot) =>
  snapshot.zones.length < 2 ? about(snapshot, "TooFewZones", TOO_FEW_ZONES) : undefined;

const partitionKnown: EvictionRule = (snapshot) => {
  const { pod, budget } = snapshot;
  if (!budget.partitionOf || budget.partitionOf(pod.name) !== undefined) return undefined;
  return about(snapshot, "PartitionUnknown", "failed to extract partition from pod Name regular expression");
};

/**
 * The rollout makes nothing unavailable by replacing a pod that serves nothing. If it counted the others, several such
 * pods would block each other. A pod that still works in part asks its budget.
 */
const takesNothing = ({ pod, rollout, now }: EvictionSnapshot): boolean =>
  rollout !== undefined && servesNothing(pod, now);

/**
 * Zone mode: the other zones must have no unavailable pod, the pod's own zone fewer than allowed. The message names
 * every blocking zone, the own one last.
 */
const zonesWithin: EvictionRule = (snapshot) => {
  if (snapshot.budget.partitionOf) return undefined;
  const own = ownZone(snapshot);
  const blocking = moveToFront(snapshot.zones, (zone) => zone !== own).flatMap((zone) => {
    const isOwn = zone === own;
    const all = countUnavailable(zone, snapshot);
    // The limit of its own zone is about the pods that stay: leaving pods are not wanted.
    const count = isOwn ? { ...all, leaving: 0 } : all;
    return sumOf(count) >= (isOwn ? maxUnavailable(snapshot) : 1) ? [describeUnavailability(count, zone.name)] : [];
  });
  return blocking.length > 0
    ? about(snapshot, "BudgetSpent", listSome(blocking, "; ") + nameReserved(snapshot))
    : undefined;
};

const MAX_NAMED = 3;

/**
 * Names the pods that count as not ready although users see them ready. Only the rollout's message names them: a
 * denied drainer reads the original's sentence.
 */
function nameReserved({ pod, zones, reservations, rollout }: EvictionSnapshot): string {
  if (!rollout) return "";
  const all = zones.flatMap((zone) => zone.pods);
  const reserved = all.filter((one) => isReady(one) && one.uid !== pod.uid && reservationOf(one, reservations));
  const names = reserved.slice(0, MAX_NAMED).map(({ name }) => name);
  return names.length > 0
    ? ` (ready, but allowed to go: ${names.join(", ")}${reserved.length > MAX_NAMED ? ", …" : ""})`
    : "";
}

/**
 * Partition mode: counts the pod's peers in all other zones together. A zone without any peer counts as one missing
 * pod, unless its StatefulSet is not under the budget, or has been created again: that one has to have the peer.
 */
const partitionWithin: EvictionRule = (snapshot) => {
  const partition = snapshot.budget.partitionOf?.(snapshot.pod.name);
  if (partition === undefined) return undefined;
  const own = ownZone(snapshot);
  const counts = snapshot.zones
    .filter((zone) => zone !== own)
    .map((zone) => {
      const count = countUnavailable(zone, snapshot, partition);
      const needsPeer = zone.orphaned === undefined || zone.orphaned === "gone";
      return needsPeer && count.tested + sumOf(count) === 0 ? { ...count, unknown: 1 } : count;
    });
  const sum = addUp(counts);
  if (sumOf(sum) < maxUnavailable(snapshot)) return undefined;
  return about(snapshot, "BudgetSpent", describeUnavailability(sum, `partition ${partition}`) + nameReserved(snapshot));
};

const withinLimit = firstOf<[EvictionSnapshot], Verdict>([zonesWithin, partitionWithin]);

const withinBudget: EvictionRule = (snapshot) => (takesNothing(snapshot) ? undefined : withinLimit(snapshot));

const allowed = (snapshot: EvictionSnapshot): Verdict => {
  const partition = snapshot.budget.partitionOf?.(snapshot.pod.name);
  const where = partition === undefined ? "" : ` for partition ${partition}`;
  return about(snapshot, "Allowed", `zpdb met${where} across ${snapshot.zones.length} zones`);
};

const about = ({ pod, budget }: EvictionSnapshot, reason: VerdictReason, message: string): Verdict =>
  verdict(reason, message, [pod, budget]);

const denied = firstOf<[EvictionSnapshot], Verdict>([
  ownerKnown,
  groupWithinBounds,
  aboveZero,
  severalZones,
  partitionKnown,
  notTwice,
  withinBudget,
]);

/**
 * The verdict of the first rule that denies, otherwise `Allowed`: the caller must then reserve the pod before it is
 * disrupted.
 */
export function decideEviction(snapshot: EvictionSnapshot): Verdict {
  return denied(snapshot) ?? allowed(snapshot);
}

interface Unavailability {
  readonly notReady: number;
  /**
   * Ready pods that a downscale removes: beyond `spec.replicas`, or beyond the replicas of a downscale that may not be stored
   * yet.
   */
  readonly leaving: number;
  /** Pods that should exist and do not. */
  readonly unknown: number;
}

export type BudgetView = Pick<EvictionSnapshot, "now" | "budget" | "reservations">;

type CountView = BudgetView & Partial<Pick<EvictionSnapshot, "pod" | "rollout">>;

/**
 * Counts the unavailable pods of one StatefulSet, without the pod in question; with a partition, only that partition's.
 * Missing pods count in every partition.
 */
export function countUnavailable(
  zone: ZoneWithPods,
  view: CountView,
  partition?: string,
): Unavailability & { readonly tested: number } {
  const { pod, budget } = view;
  const isTested = (one: Pod): boolean => partition === undefined || budget.partitionOf?.(one.name) === partition;
  const tested = zone.pods.filter((one) => isTested(one) && !isIdleSurplus(one, zone));
  const others = tested.filter((one) => one.uid !== pod?.uid && !sharesCure(one, zone, view));
  return {
    tested: tested.length,
    ...countPods(others, zone, view),
    unknown: countMissing(zone, withLeftBehind(zone, pod)),
  };
}

/**
 * The pods of the zone, and the pod in question: until its StatefulSet takes a pod back that it has left behind, it
 * counts that as missing. So does one that was created again before the pods of the former one are gone.
 */
const withLeftBehind = ({ name, uid, pods, orphaned }: ZoneWithPods, pod: Pod | undefined): readonly Pod[] =>
  pod && !orphaned && pod.madeBy === name && pod.owner !== uid && !pods.some((one) => one.uid === pod.uid)
    ? [...pods, pod]
    : pods;

/** Counts the unavailable pods of a zone, without pods that it is not to have and that never served. */
export function countPods(some: readonly Pod[], zone: ZoneWithPods, view: BudgetView): Omit<Unavailability, "unknown"> {
  const from = firstLeaving(zone, view.reservations);
  const counted = some.filter((one) => !isIdleSurplus(one, zone));
  const ready = counted.filter((one) => countsAsReady(one, view));
  const leaving = ready.filter((one) => isSurplus(one, zone) || ordinalOf(one) >= from).length;
  return { notReady: counted.length - ready.length, leaving };
}

export function sumOf({ notReady, leaving, unknown }: Unavailability): number {
  return notReady + leaving + unknown;
}

export function addUp(counts: readonly Unavailability[]): Unavailability {
  const sum = (read: (count: Unavailability) => number): number =>
    counts.reduce((total, count) => total + read(count), 0);
  return {
    notReady: sum(({ notReady }) => notReady),
    leaving: sum(({ leaving }) => leaving),
    unknown: sum(({ unknown }) => unknown),
  };
}

/**
 * The rollout asks about a pod that is not ready, and this other one of its zone waits for the same replacement: if
 * each counted for the other, neither would ever be replaced. One that is reserved, or on its way already, counts.
 */
function sharesCure(one: Pod, zone: ZoneWithPods, { pod, rollout, reservations }: CountView): boolean {
  if (!rollout || !pod || isReady(pod) || zone.uid !== pod.owner || reservationOf(one, reservations)) return false;
  return !isReady(one) && !isTerminating(one) && one.revision !== zone.status.updateRevision;
}

/** True if the pod is ready, is not reserved and, with a cross-zone delay, has been ready for longer than that. */
export function countsAsReady(pod: Pod, { now, budget, reservations }: BudgetView): boolean {
  if (!isReady(pod) || reservationOf(pod, reservations)) return false;
  if (budget.crossZoneEvictionDelayMs === 0) return true;
  return pod.readySince !== undefined && now > pod.readySince + budget.crossZoneEvictionDelayMs;
}

/** `1 pod not ready, 2 pods unknown in partition 2` */
export function describeUnavailability({ notReady, leaving, unknown }: Unavailability, where: string): string {
  const parts = [
    [notReady, "not ready"],
    [leaving, "to be removed"],
    [unknown, "unknown"],
  ] as const;
  const counts = parts
    .filter(([count]) => count > 0)
    .map(([count, what]) => `${count} ${count > 1 ? "pods" : "pod"} ${what}`);
  return `${counts.join(", ")} in ${where}`;
}
