/** Who is unavailable, as far as one pod's eviction is concerned (§5.5). */
import type { BudgetZone, Member } from "./member.ts";
import type { Reservations } from "./reservation.ts";
import type { Budget } from "./zpdb.ts";

/** All that a decision about one eviction may look at, gathered at one moment. */
export interface EvictionSnapshot {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly pod: Member;
  readonly budget: Budget;
  /** The StatefulSets that the budget selects, in byte order of their names. */
  readonly zones: readonly BudgetZone[];
  /** Those that still count. */
  readonly reservations: Reservations;
  /** Set when the rollout asks: how many pods of the zone it may have unavailable at once, at least 1. */
  readonly rollout?: { readonly maxUnavailable: number } | undefined;
  /** The process that asks, as it signs its reservations. */
  readonly by: string;
  /** The disruption goes by the pod's name alone: a successor of the pod may be what it reaches. */
  readonly unpinned?: boolean | undefined;
}

export interface Count {
  readonly notReady: number;
  /** Pods that should exist, but do not. */
  readonly unknown: number;
}

/** Counts one StatefulSet; with a partition, its pods in that alone. Missing pods are charged to every partition. */
export function countZone(zone: BudgetZone, snapshot: EvictionSnapshot, partition?: string): Count & { readonly tested: number } {
  const { pod, budget } = snapshot;
  const tested = zone.pods.filter((one) => partition === undefined || budget.partitionOf?.(one.name) === partition);
  const notReady = tested.filter((one) => one.uid !== pod.uid && !isReady(one, snapshot)).length;
  return { tested: tested.length, notReady, unknown: Math.max(0, Math.max(zone.replicas, zone.status.replicas) - zone.pods.length) };
}

/** Ready, not about to go, and with a cross-zone delay ready for longer than that. */
export function isReady(pod: Member, { now, budget, reservations }: Pick<EvictionSnapshot, "now" | "budget" | "reservations">): boolean {
  if (!pod.ready || reservations[pod.name]?.uid === pod.uid) return false;
  if (budget.crossZoneEvictionDelayMs === 0) return true;
  return pod.readySince !== undefined && now > pod.readySince + budget.crossZoneEvictionDelayMs;
}

/** `1 pod not ready, 2 pods unknown in partition 2` */
export function describeCount({ notReady, unknown }: Count, where: string): string {
  const parts = [
    [notReady, "not ready"],
    [unknown, "unknown"],
  ] as const;
  const told = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${count > 1 ? "pods" : "pod"} ${what}`);
  return `${told.join(", ")} in ${where}`;
}
