/** Counts the unavailable pods that one pod's eviction depends on (§5.5). */
import { isReady, isTerminating } from "../model/health.ts";
import { byOrdinal, ordinalOf } from "../model/order.ts";
import { countMissing, isIdleSurplus, isSurplus } from "../model/readiness.ts";
import type { Pod } from "../model/pod.ts";
import type { Zone, ZoneWithPods } from "../model/zone.ts";
import { firstLeaving, reservationOf, type Reservations } from "./reservation.ts";
import type { Budget } from "./zpdb.ts";

/** The facts for a decision about one eviction, gathered at one moment. */
export interface EvictionSnapshot {
  /** Milliseconds since the epoch. */
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

interface Unavailability {
  readonly notReady: number;
  /**
   * Ready pods that a downscale removes: beyond `spec.replicas`, or beyond those of a downscale that may not be stored
   * yet.
   */
  readonly leaving: number;
  /** Pods that should exist and do not. */
  readonly unknown: number;
}

/** The facts that pods are judged by. */
export type PodView = Pick<EvictionSnapshot, "now" | "budget" | "reservations">;

type CountView = PodView & Partial<Pick<EvictionSnapshot, "pod" | "rollout">>;

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
    ? [...pods, pod].toSorted(byOrdinal)
    : pods;

/** Counts the unavailable pods of a zone, without pods that it is not to have and that never served. */
export function countPods(some: readonly Pod[], zone: ZoneWithPods, view: PodView): Omit<Unavailability, "unknown"> {
  const from = firstLeaving(zone, view.reservations);
  const counted = some.filter((one) => !isIdleSurplus(one, zone));
  const ready = counted.filter((one) => countsAsReady(one, view));
  const leaving = ready.filter((one) => isSurplus(one, zone) || ordinalOf(one) >= from).length;
  return { notReady: counted.length - ready.length, leaving };
}

/** All unavailable pods together. */
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
function countsAsReady(pod: Pod, { now, budget, reservations }: PodView): boolean {
  if (!isReady(pod) || reservationOf(pod, reservations)) return false;
  if (budget.crossZoneEvictionDelayMs === 0) return true;
  return pod.readySince !== undefined && now > pod.readySince + budget.crossZoneEvictionDelayMs;
}

/**
 * A pod that is not ready, reserved or missing. A pod that a downscale removes is not one: only its zone shows whether it
 * is still to go.
 */
interface BlockingPod {
  readonly pod: string;
  readonly zone: Zone;
}

/** Missing pods of a zone that are named: `spec.replicas` may be larger than memory. */
const MAX_MISSING = 100;

export function findBlocking(zones: readonly ZoneWithPods[], view: PodView): readonly BlockingPod[] {
  return zones.flatMap(({ pods, ...zone }) => {
    const unready = pods
      .filter((pod) => !countsAsReady(pod, view) && !isIdleSurplus(pod, zone))
      .map(({ name }) => name);
    return [...unready, ...missingPods(zone, pods, MAX_MISSING)].map((pod) => ({ pod, zone }));
  });
}

/** Names of pods that the zone should have and has not, the first `most` of them. */
export function missingPods(zone: Zone, pods: readonly { readonly name: string }[], most: number): string[] {
  const expected = Math.max(zone.replicas, zone.status.replicas);
  const count = Math.min(most, countMissing(zone, pods));
  if (count === 0) return [];
  const there = new Set(pods.map(({ name }) => name));
  const missing: string[] = [];
  for (let ordinal = zone.firstOrdinal; ordinal < zone.firstOrdinal + expected && missing.length < count; ordinal++) {
    const name = `${zone.name}-${ordinal}`;
    if (!there.has(name)) missing.push(name);
  }
  return missing;
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
