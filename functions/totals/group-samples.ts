/**
 * The series of rollout groups, from the statuses of their RolloutGroups and the count of ticks, and of disruption budgets.
 * Pure.
 */
import { METRICS } from "../../infra/metrics/tables/metric-table.ts";
import type { Sample, Samples } from "../../infra/metrics/registry.ts";
import type { Totals } from "../../infra/metrics/totals.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import type { RolloutGroupStatus, StoredHold } from "../../reconciler/group-status/status.ts";
import { windowOf } from "../../reconciler/group-status/zones.ts";
import { findClosedWindow, type WrittenWindow } from "../../reconciler/model/rollout-window.ts";
import { findFacts } from "../../reconciler/model/decision.ts";
import { MAX_ZONES } from "../../reconciler/model/refused-group.ts";
import { DURATION_BOUNDS, reconcilesAt } from "../../reconciler/group-status/progress.ts";

export interface GroupRecord {
  readonly namespace: string;
  /** Seconds without a step after which it counts as stalled. */
  readonly deadline: number;
  readonly status: Partial<RolloutGroupStatus>;
}

/** The protection in a disruption budget's status: its condition `Protecting`. */
export interface ProtectionRecord {
  readonly namespace: string;
  readonly name: string;
  readonly isProtecting: boolean;
  readonly reason: string;
}

/** Disruption budgets with a series; further ones have none. */
const MAX_BUDGETS = 1000;

export function sampleProtections(
  budgets: readonly ProtectionRecord[],
): readonly [metric: string, samples: readonly Sample[]] {
  const samples = budgets.slice(0, MAX_BUDGETS).map(({ namespace, name, isProtecting, reason }) => ({
    labels: { namespace, budget: name, reason },
    value: isProtecting ? 1 : 0,
  }));
  return [METRICS.budgetProtecting.name, samples];
}

type Labels = Sample["labels"];
type Row = readonly [metric: { readonly name: string }, samples: readonly Sample[]];

/** Groups beyond `most` have no series. `now` in milliseconds since the epoch. */
export function sampleGroups(
  groups: readonly GroupRecord[],
  { passes, lastTick, series }: Totals,
  { most, now }: { readonly most: number; readonly now: number },
): Samples {
  const samples = new Map<string, Sample[]>([...series].map(([name, own]) => [name, [...own]]));
  const add = ([{ name }, more]: Row): void => void samples.set(name, [...(samples.get(name) ?? []), ...more]);
  const at = secondsOf(lastTick);
  if (at !== undefined) add([METRICS.lastTick, [{ labels: {}, value: at }]]);
  const rows = groups.slice(0, most).flatMap((group) => sampleGroup(group, { passes, lastTick: at, now }));
  const byMetric = Map.groupBy(rows, ([{ name }]) => name);
  for (const [name, own] of byMetric) add([{ name }, own.flatMap(([, more]) => more)]);
  return samples;
}

function sampleGroup({ namespace, deadline, status }: GroupRecord, { passes, lastTick, now }: Moment): Row[] {
  const labels = { namespace, rollout_group: status.group ?? "" };
  return [
    ...sampleTotals(labels, status.totals, { passes, lastTick }),
    ...sampleState(labels, status, lastTick),
    ...sampleClock(labels, status, deadline),
    ...sampleZones(labels, status, now),
  ];
}

interface Moment extends Ticks {
  readonly now: number;
}

interface Ticks {
  readonly passes: number;
  /** Unix time. */
  readonly lastTick: number | undefined;
}

function sampleTotals(labels: Labels, totals: RolloutGroupStatus["totals"], { passes, lastTick }: Ticks): Row[] {
  if (!totals) return [];
  const { name } = METRICS.groupDuration;
  const success = totals.failing ? secondsOf(totals.lastSuccessTime) : (lastTick ?? secondsOf(totals.lastSuccessTime));
  return [
    one(METRICS.groupReconciles, labels, reconcilesAt(totals, passes)),
    one(METRICS.groupFailures, labels, totals.failures),
    one(METRICS.podsReplaced, labels, totals.podsReplaced),
    [
      METRICS.groupDuration,
      [
        // A CustomResourceDefinition of an earlier version drops these fields: zeros would mean that each rollout took
        // longer than the last bound.
        ...(totals.timedWithin ?? []).flatMap((value, i) => {
          const le = DURATION_BOUNDS[i];
          return le === undefined ? [] : [{ labels: { ...labels, le }, value, metricName: `${name}_bucket` }];
        }),
        { labels: { ...labels, le: "+Inf" }, value: totals.timed, metricName: `${name}_bucket` },
        { labels, value: totals.seconds, metricName: `${name}_sum` },
        { labels, value: totals.timed, metricName: `${name}_count` },
      ],
    ],
    ...(success === undefined ? [] : [one(METRICS.groupSuccess, labels, success)]),
  ];
}

/** The duration of the rollout under way so far, otherwise of the last one. */
function sampleDuration(labels: Labels, progress: RolloutGroupStatus["progress"], lastTick: number | undefined): Row[] {
  const [from, to] = [secondsOf(progress?.startTime), secondsOf(progress?.completionTime) ?? lastTick];
  return from === undefined || to === undefined ? [] : [one(METRICS.rolloutDuration, labels, Math.max(0, to - from))];
}

function sampleState(
  labels: Labels,
  { phase, holds = [], progress }: Partial<RolloutGroupStatus>,
  lastTick: number | undefined,
): Row[] {
  const [hold] = holds;
  return [
    ...(phase === undefined ? [] : [one(METRICS.groupPhase, { ...labels, phase }, 1)]),
    ...(hold ? [one(METRICS.groupHeld, { ...labels, reason: hold.reason }, 1)] : []),
    one(METRICS.stepsLeft, labels, progress?.stepsLeft ?? 0),
    ...sampleDuration(labels, progress, lastTick),
  ];
}

/** The clock stops while there is nothing to do, and while a group waits as a user asked. */
function sampleClock(
  labels: Labels,
  { phase, holds = [], progress }: Partial<RolloutGroupStatus>,
  deadline: number,
): Row[] {
  const lastStep = phase === "Ready" || isAsked(holds[0]) ? undefined : secondsOf(progress?.lastStepTime);
  return lastStep === undefined
    ? []
    : [one(METRICS.lastStep, labels, lastStep), one(METRICS.progressDeadline, labels, deadline)];
}

const isAsked = (hold: StoredHold | undefined): boolean => findFacts(hold?.reason ?? "")?.requested === true;

function sampleZones(labels: Labels, { zones = [] }: Partial<RolloutGroupStatus>, now: number): Row[] {
  return zones.slice(0, MAX_ZONES).flatMap((zone): Row[] => {
    const { name, replicas, pods, updated, ready, gatesBypassedUntil } = zone;
    const bypassed = secondsOf(gatesBypassedUntil);
    const counts = Object.entries({ wanted: replicas, existing: pods, updated, ready });
    const own = { ...labels, zone: name };
    return [
      [METRICS.zonePods, counts.map(([state, value]) => ({ labels: { ...own, state }, value }))],
      ...(bypassed === undefined || bypassed * 1000 <= now ? [] : [one(METRICS.gatesBypassed, own, bypassed)]),
      ...sampleWindow(own, windowOf(zone), now),
    ];
  });
}

/** By the time of the scrape: windows open and close without a tick. */
function sampleWindow(labels: Labels, window: WrittenWindow | undefined, now: number): Row[] {
  if (!window) return [];
  const closed = findClosedWindow(window, now);
  return [
    one(METRICS.windowOpen, labels, closed ? 0 : 1),
    ...(closed?.until === undefined ? [] : [one(METRICS.windowOpens, labels, closed.until / 1000)]),
  ];
}

const one = (metric: { readonly name: string }, labels: Labels, value: number): Row => [metric, [{ labels, value }]];

function secondsOf(time: string | undefined): number | undefined {
  const ms = parseTimestamp(time ?? "");
  return ms === undefined ? undefined : ms / 1000;
}
