/**
 * The counts of a group, over all runs. Every tick reconciles every group. The reconciles of a settled group are
 * therefore counted by the ticks since its last write, and need no write.
 */
import { METRICS } from "../../infra/metrics/tables/metric-table.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import type { StatusInput } from "./facts.ts";
import type { GroupTotals } from "./status.ts";

/** Seconds: the bounds of `timedWithin`. */
export const DURATION_BOUNDS: readonly number[] = METRICS.groupDuration.buckets;

const NOTHING: GroupTotals = {
  reconciles: 0,
  passes: 0,
  failures: 0,
  podsReplaced: 0,
  timed: 0,
  timedWithin: [],
  seconds: 0,
  failing: false,
};

/** Adds this reconcile. The numbers are absolute: writing them twice counts nothing twice. */
export function countReconcile({ facts, earlier, tookMs, passes, now }: StatusInput): GroupTotals {
  const before = { ...NOTHING, ...earlier.totals };
  const { failing, replaced } = facts;
  const lastSuccessTime = failing ? before.lastSuccessTime : formatTimestamp(now);
  return {
    reconciles: reconcilesAt({ ...before, passes: earlier.totals ? before.passes : passes - 1 }, passes, 1),
    passes,
    failures: before.failures + (failing ? 1 : 0),
    podsReplaced: before.podsReplaced + replaced,
    timed: before.timed + 1,
    timedWithin: DURATION_BOUNDS.map((bound, i) => (before.timedWithin?.[i] ?? 0) + (tookMs <= bound * 1000 ? 1 : 0)),
    seconds: Math.round(before.seconds * 1000 + tookMs) / 1000,
    failing,
    ...(lastSuccessTime !== undefined && { lastSuccessTime }),
  };
}

/**
 * The reconciles by tick `now`, at least `least` more than stored: the count of ticks may have been lost with its
 * Lease.
 */
export function reconcilesAt({ reconciles, passes }: GroupTotals, now: number, least = 0): number {
  return reconciles + Math.max(least, now - passes);
}
