import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sampleGroups } from "../../../functions/totals/group-samples.ts";
import { METRICS } from "../../../infra/metrics/tables/metric-table.ts";
import type { GroupPhase, ZoneRow } from "../../../reconciler/group-status/status.ts";

const TIME = "2026-01-01T00:00:00Z";
const AT = { most: 10, now: Date.parse(TIME) };

type Status = Parameters<typeof sampleGroups>[0][number]["status"];

/** The series of a group with this status, by the time of its last tick. */
const sample = (status: Partial<Status>, lastTick?: string) =>
  sampleGroups(
    [{ namespace: "cache", deadline: 1800, status: { group: "ingester", ...status } }],
    { passes: 1, series: new Map(), ...(lastTick !== undefined && { lastTick }) },
    AT,
  );

/** The series of the progress clock. */
function clockOf(phase: GroupPhase, reason?: string): number {
  const held = { phase: "Waiting", message: "", cause: "", objects: [], since: TIME } as const;
  const holds = reason === undefined ? [] : [{ reason, ...held }];
  const samples = sample({ phase, holds, progress: { stepsLeft: 1, startTime: TIME, lastStepTime: TIME } });
  const shown = samples.get(METRICS.lastStep.name)?.length;
  assert.equal(samples.get(METRICS.progressDeadline.name)?.length, shown, "an alert joins them");
  return shown ?? 0;
}

describe("the progress clock", () => {
  for (const [name, shown, phase, reason] of [
    ["a group that rolls", 1, "RollingOut", undefined],
    ["a group that waits for a pod", 1, "Waiting", "ZoneNotReady"],
    ["a group that failed to reconcile", 1, "RollingOut", "ReconcileFailed"],
    ["a group whose gate has failed", 1, "Blocked", "GateFailed"],
    ["a group that is ready", 0, "Ready", undefined],
    ["a group that is paused", 0, "Paused", "ZonePaused"],
    ["a group that waits for a gate, as a user asked", 0, "Waiting", "GateWaiting"],
  ] as const)
    it(`${shown === 1 ? "runs" : "does not run"} for ${name}`, () => assert.equal(clockOf(phase, reason), shown));
});

describe("the duration of a rollout", () => {
  const progress = { stepsLeft: 0, startTime: TIME, lastStepTime: TIME };
  for (const [name, status, seconds] of [
    [
      "is that of the last one once it is over",
      { progress: { ...progress, completionTime: "2026-01-01T00:00:07Z" } },
      7,
    ],
    ["grows with the ticks while it is under way", { progress }, 30],
    ["is not shown for a group that has never rolled out", {}, undefined],
  ] as const)
    it(name, () =>
      assert.equal(sample(status, "2026-01-01T00:00:30Z").get(METRICS.rolloutDuration.name)?.[0]?.value, seconds),
    );
});

describe("the durations of reconciles are a histogram", () => {
  const totals = { reconciles: 9, passes: 1, failures: 0, podsReplaced: 0, timed: 3, seconds: 12, failing: false };
  const shown = (timedWithin?: readonly number[]) =>
    sample({ totals: { ...totals, ...(timedWithin && { timedWithin }) } })
      .get(METRICS.groupDuration.name)
      ?.map(({ labels, value, metricName }) => [metricName?.split("_").at(-1), labels["le"], value]);
  const END = [
    ["bucket", "+Inf", 3],
    ["sum", undefined, 12],
    ["count", undefined, 3],
  ];

  it("with cumulative buckets", () => {
    const all = shown([0, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]);
    assert.deepEqual(all?.slice(0, 4), [
      ["bucket", 0.005, 0],
      ["bucket", 0.01, 1],
      ["bucket", 0.025, 1],
      ["bucket", 0.05, 2],
    ]);
    assert.deepEqual(all.slice(-3), END);
  });
  it("without buckets where the definition drops them", () => assert.deepEqual(shown(), END));
});

const PODS = { replicas: 3, pods: 3, updated: 3, ready: 3, paused: false };
const ROW = { ...PODS, currentRevision: "1", updateRevision: "1", generation: 1, observedGeneration: 1 };

const samplesOf = (zones: readonly ZoneRow[], name: string): readonly (readonly [zone: unknown, value: number])[] =>
  (sample({ zones }).get(name) ?? []).map(({ labels: { namespace, rollout_group, zone }, value }) => {
    assert.deepEqual([namespace, rollout_group], ["cache", "ingester"]);
    return [zone, value];
  });

it("the end of a bypass is shown for the zones that have one, until it is over", () => {
  const zones = [
    { ...ROW, name: "zone-a" },
    { ...ROW, name: "zone-b", gatesBypassedUntil: "2026-01-01T00:00:30Z" },
    { ...ROW, name: "zone-c", gatesBypassedUntil: TIME },
  ];
  assert.deepEqual(samplesOf(zones, METRICS.gatesBypassed.name), [["zone-b", AT.now / 1000 + 30]]);
});

describe("the rollout window of a zone, by the time of the scrape", () => {
  const HOURS = 3600;
  const TABLE: readonly [name: string, window: ZoneRow["rolloutWindow"], open?: number, opensInSeconds?: number][] = [
    ["has no series without a window", undefined],
    ["is open", { cron: "* * 0-4 * * *" }, 1],
    ["is closed, and opens", { cron: "* * 2-4 * * *" }, 0, 2 * HOURS],
    ["goes by its time zone", { cron: "* * 2-4 * * *", timeZone: "Europe/Berlin" }, 0, HOURS],
    ["opens for its duration", { cron: "0 0 23 * * *", duration: "2h" }, 1],
    ["is closed by a freeze", { freezes: "2025-12-31T00:00:00Z/2026-01-02T00:00:00Z" }, 0, 24 * HOURS],
    ["never opens any more", { cron: "* * 2 * * * 2020" }, 0],
    ["cannot be read", { cron: "at night" }, 0],
  ];
  for (const [name, rolloutWindow, open, opensInSeconds] of TABLE)
    it(name, () => {
      const zones = [{ ...ROW, name: "zone-a", ...(rolloutWindow && { rolloutWindow }) }];
      const shown = [METRICS.windowOpen, METRICS.windowOpens].map((metric) => samplesOf(zones, metric.name));
      const opens = opensInSeconds === undefined ? [] : [["zone-a", AT.now / 1000 + opensInSeconds]];
      assert.deepEqual(shown, [open === undefined ? [] : [["zone-a", open]], opens]);
    });
});
