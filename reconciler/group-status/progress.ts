/** The progress clock of a group, its next steps, the estimate of its end, and its counts over all runs. */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { factsOf, type Hold } from "../model/decision.ts";
import type { RemainingZone } from "../model/outcome.ts";
import type { GroupFacts, StatusInput } from "./facts.ts";
import type { RemainingStep, GroupPhase, GroupProgress, StoredHold, ZoneRow, GroupTotals } from "./status.ts";
import { METRICS } from "../../infra/metrics/tables/metric-table.ts";

export function listSteps(remaining: readonly RemainingZone[]): RemainingStep[] {
  return remaining.flatMap(({ zone, count, pods, atOnce }): RemainingStep[] => [
    ...(count > 0 ? [{ action: "ReplacePods" as const, zone, count, atOnce, ...(pods.length > 0 && { pods }) }] : []),
    { action: "FinishZone", zone },
  ]);
}

/** A step in words, as the status page and the plan show it. */
export function describeStep({ action, zone, count, atOnce, pods = [] }: RemainingStep): string {
  if (action === "FinishZone") return `record ${zone} as updated`;
  const more = (count ?? 0) - pods.length;
  const names = pods.length === 0 ? "" : `: ${pods.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  return `replace ${count} ${count === 1 ? "pod" : "pods"} of ${zone}, ${atOnce} at a time${names}`;
}

/** Pods to replace, and zones to record. */
const countSteps = (remaining: readonly RemainingZone[]): number =>
  remaining.reduce((sum, { count }) => sum + count + 1, 0);

/** The clock starts when a group ceases to be ready, or gets another revision; it stops when the group is ready. */
export function advanceProgress(
  { facts, earlier, now }: StatusInput,
  isReady: boolean,
  zones: readonly ZoneRow[],
): GroupProgress | undefined {
  const before = earlier.progress;
  const at = formatTimestamp(now);
  if (isReady) return before && finish(before, at);
  const isRunning =
    before !== undefined && before.completionTime === undefined && !hasNewRevision(earlier.zones, zones);
  const startTime = isRunning ? before.startTime : at;
  const hasMoved = !isRunning || facts.step !== undefined || hasAdvanced(earlier.zones, zones);
  const lastStepTime = hasMoved ? at : before.lastStepTime;
  return { stepsLeft: countSteps(facts.remaining), startTime, lastStepTime, ...measurePods(facts, before) };
}

function finish({ completionTime, startTime, lastStepTime }: GroupProgress, at: string): GroupProgress {
  return completionTime === undefined
    ? { stepsLeft: 0, startTime, lastStepTime: at, completionTime: at }
    : { stepsLeft: 0, startTime, lastStepTime, completionTime };
}

/** By the pods' own ready times; if no pod was read, the earlier time counts. */
function measurePods(
  { remaining }: GroupFacts,
  before: GroupProgress | undefined,
): Pick<GroupProgress, "secondsPerPod"> {
  const known = remaining.flatMap(({ msPerPod }) => msPerPod ?? []);
  const mean = known.reduce((sum, ms) => sum + ms, 0) / known.length / 1000;
  const secondsPerPod = known.length > 0 ? Math.max(1, Math.round(mean)) : before?.secondsPerPod;
  return secondsPerPod === undefined ? {} : { secondsPerPod };
}

/**
 * The end of a rollout that continues: the pods of the last step become ready, then those that are left are replaced.
 * Pods that take longer than others move it. A group that waits has none, as nobody knows for how long, and neither has
 * one whose pod is broken or takes longer than is ordinary.
 */
export function estimateEnd(
  { facts, now }: StatusInput,
  progress: GroupProgress,
  { phase, holds }: { readonly phase: GroupPhase; readonly holds: readonly StoredHold[] },
): GroupProgress {
  const { secondsPerPod, lastStepTime, completionTime } = progress;
  const isGoing = phase === "RollingOut" && (!facts.hold || isOrdinary(facts.hold, holds[0], now));
  if (secondsPerPod === undefined || completionTime !== undefined || !isGoing) return progress;
  const batches = facts.remaining.reduce(
    (sum, { count, atOnce, batches = Math.ceil(count / atOnce) }) => sum + batches,
    0,
  );
  const steppedAt = parseTimestamp(lastStepTime) ?? now;
  // The remaining steps were listed before the step of this tick, and still have its pods.
  const from = facts.step ? now : Math.max(now, steppedAt + secondsPerPod * 1000);
  return { ...progress, estimatedCompletionTime: formatTimestamp(from + batches * secondsPerPod * 1000) };
}

/** A rollout makes pods of one zone at a time wait: two zones that are not ready are no part of it. */
const isOrdinary = ({ reason, culprit }: Hold, stored: StoredHold | undefined, now: number): boolean =>
  culprit?.isBroken !== true &&
  reason !== "MultipleZonesNotReady" &&
  now - (parseTimestamp(stored?.since ?? "") ?? now) < factsOf(reason).patienceMs;

const byName = (zones: readonly ZoneRow[] | undefined): ReadonlyMap<string, ZoneRow> =>
  new Map((zones ?? []).map((zone) => [zone.name, zone]));

function hasNewRevision(before: readonly ZoneRow[] | undefined, zones: readonly ZoneRow[]): boolean {
  const earlier = byName(before);
  return zones.some(
    ({ name, updateRevision }) => (earlier.get(name)?.updateRevision ?? updateRevision) !== updateRevision,
  );
}

/** True if a pod was updated or became ready, or a zone was recorded. */
function hasAdvanced(before: readonly ZoneRow[] | undefined, zones: readonly ZoneRow[]): boolean {
  const earlier = byName(before);
  return zones.some(({ name, updated, ready, currentRevision }) => {
    const old = earlier.get(name);
    return old && (updated > old.updated || ready > old.ready || currentRevision !== old.currentRevision);
  });
}

// The counts: every tick reconciles every group. The reconciles of a settled group are therefore counted by the ticks
// since its last write, and need no write.

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
