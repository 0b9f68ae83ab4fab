/** Counts the unavailable pods that one pod's eviction depends on (§5.5). */
import { countMissing } from "../model/readiness.ts";
import type { BudgetZone, BudgetPod } from "./budget-pod.ts";
import type { Reservations } from "./reservation.ts";
import type { Budget } from "./zpdb.ts";

/** The facts for a decision about one eviction, gathered at one moment. */
export interface EvictionSnapshot {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly pod: BudgetPod;
  readonly budget: Budget;
  /** The StatefulSets that the budget selects, in byte order of their names. */
  readonly zones: readonly BudgetZone[];
  /** Reservations that have not expired. */
  readonly reservations: Reservations;
  /** Set when the rollout asks: how many pods of the zone it may have unavailable at once, at least 1. */
  readonly rollout?: { readonly maxUnavailable: number } | undefined;
  /** Identity of the requesting process, as in its reservations. */
  readonly by: string;
  /** The disruption is pinned to no UID: it may reach a successor of the pod. */
  readonly unpinned?: boolean | undefined;
}

export interface Unavailability {
  readonly notReady: number;
  /** Pods that should exist and do not. */
  readonly unknown: number;
}

/** Counts the unavailable pods of one StatefulSet; with a partition, only that partition's. Missing pods count in every partition. */
export function countUnavailable(
  zone: BudgetZone,
  snapshot: EvictionSnapshot,
  partition?: string,
): Unavailability & { readonly tested: number } {
  const { pod, budget } = snapshot;
  const tested = zone.pods.filter((one) => partition === undefined || budget.partitionOf?.(one.name) === partition);
  const notReady = tested.filter((one) => one.uid !== pod.uid && !isReady(one, snapshot)).length;
  return { tested: tested.length, notReady, unknown: countMissing(zone, zone.pods) };
}

/** True if the pod is ready, is not reserved and, with a cross-zone delay, has been ready for longer than that. */
export function isReady(pod: BudgetPod, { now, budget, reservations }: Pick<EvictionSnapshot, "now" | "budget" | "reservations">): boolean {
  if (!pod.ready || reservations[pod.name]?.uid === pod.uid) return false;
  if (budget.crossZoneEvictionDelayMs === 0) return true;
  return pod.readySince !== undefined && now > pod.readySince + budget.crossZoneEvictionDelayMs;
}

/** `1 pod not ready, 2 pods unknown in partition 2` */
export function describeUnavailability({ notReady, unknown }: Unavailability, where: string): string {
  const parts = [
    [notReady, "not ready"],
    [unknown, "unknown"],
  ] as const;
  const counts = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${count > 1 ? "pods" : "pod"} ${what}`);
  return `${counts.join(", ")} in ${where}`;
}
