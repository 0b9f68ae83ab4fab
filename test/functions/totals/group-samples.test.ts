import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sampleGroups } from "../../../functions/totals/group-samples.ts";
import { METRICS } from "../../../infra/metrics/tables/metric-table.ts";
import type { GroupPhase } from "../../../reconciler/group-status/status.ts";

const TIME = "2026-01-01T00:00:00Z";

/** The series of the progress clock. */
function clockOf(phase: GroupPhase, reason?: string): number {
  const blocked = reason === undefined ? [] : [{ reason, message: "", cause: "", objects: [], since: TIME }];
  const status = { group: "ingester", phase, blocked, progress: { stepsLeft: 1, startTime: TIME, lastStepTime: TIME } };
  const samples = sampleGroups([{ namespace: "cache", deadline: 1800, status }], { passes: 1, series: new Map() }, 10);
  assert.equal(
    samples.get(METRICS.progressDeadline.name)?.length,
    samples.get(METRICS.lastStep.name)?.length,
    "an alert joins them",
  );
  return samples.get(METRICS.lastStep.name)?.length ?? 0;
}

describe("the progress clock", () => {
  for (const [name, shown, phase, reason] of [
    ["a group that rolls", 1, "RollingOut", undefined],
    ["a group that waits for a pod", 1, "Waiting", "ZoneNotReady"],
    ["a group that failed to reconcile", 1, "RollingOut", "ReconcileFailed"],
    ["a group whose gate has failed", 1, "Stalled", "GateFailed"],
    ["a group that is ready", 0, "Ready", undefined],
    ["a group that is paused", 0, "Paused", "ZonePaused"],
    ["a group that waits for a gate, as a user asked", 0, "Waiting", "GateWaiting"],
  ] as const)
    it(`${shown === 1 ? "runs" : "does not run"} for ${name}`, () => assert.equal(clockOf(phase, reason), shown));
});

describe("the duration of a rollout", () => {
  const durationOf = (progress?: { readonly completionTime?: string }): number | undefined => {
    const status = {
      group: "ingester",
      ...(progress && { progress: { stepsLeft: 0, startTime: TIME, lastStepTime: TIME, ...progress } }),
    };
    const totals = { passes: 1, lastTick: "2026-01-01T00:00:30Z", series: new Map() };
    return sampleGroups([{ namespace: "cache", deadline: 1800, status }], totals, 10).get(
      METRICS.rolloutDuration.name,
    )?.[0]?.value;
  };
  it("is that of the last one once it is over", () =>
    assert.equal(durationOf({ completionTime: "2026-01-01T00:00:07Z" }), 7));
  it("grows with the ticks while it is under way", () => assert.equal(durationOf({}), 30));
  it("is not shown for a group that has never rolled out", () => assert.equal(durationOf(), undefined));
});

it("the durations of reconciles are a histogram with cumulative buckets", () => {
  const timedWithin = [0, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2];
  const totals = {
    reconciles: 9,
    passes: 1,
    failures: 0,
    podsReplaced: 0,
    timed: 3,
    timedWithin,
    seconds: 12,
    failing: false,
  };
  const samples = sampleGroups(
    [{ namespace: "cache", deadline: 1800, status: { group: "ingester", totals } }],
    { passes: 1, series: new Map() },
    10,
  );
  const shown = samples
    .get(METRICS.groupDuration.name)
    ?.map(({ labels, value, metricName }) => [metricName?.split("_").at(-1), labels["le"], value]);
  assert.deepEqual(shown?.slice(0, 4), [
    ["bucket", 0.005, 0],
    ["bucket", 0.01, 1],
    ["bucket", 0.025, 1],
    ["bucket", 0.05, 2],
  ]);
  assert.deepEqual(shown.slice(-3), [
    ["bucket", "+Inf", 3],
    ["sum", undefined, 12],
    ["count", undefined, 3],
  ]);
});

it("the histogram has no buckets where the definition drops them", () => {
  const totals = { reconciles: 9, passes: 1, failures: 0, podsReplaced: 0, timed: 3, seconds: 12, failing: false };
  const samples = sampleGroups(
    [{ namespace: "cache", deadline: 1800, status: { group: "ingester", totals } }],
    { passes: 1, series: new Map() },
    10,
  );
  assert.deepEqual(
    samples.get(METRICS.groupDuration.name)?.map(({ labels, value }) => [labels["le"], value]),
    [
      ["+Inf", 3],
      [undefined, 12],
      [undefined, 3],
    ],
  );
});

it("the end of a bypass is shown for the zones that have one", () => {
  const row = { currentRevision: "1", updateRevision: "1", replicas: 3, pods: 3, updated: 3, ready: 3, paused: false };
  const zones = [
    { ...row, name: "zone-a", generation: 1, observedGeneration: 1 },
    { ...row, name: "zone-b", generation: 1, observedGeneration: 1, gatesBypassedUntil: "2026-01-01T00:00:30Z" },
  ];
  const samples = sampleGroups(
    [{ namespace: "cache", deadline: 1800, status: { group: "ingester", zones } }],
    { passes: 1, series: new Map() },
    10,
  );
  assert.deepEqual(samples.get(METRICS.gatesBypassed.name), [
    {
      labels: { namespace: "cache", rollout_group: "ingester", zone: "zone-b" },
      value: Date.parse("2026-01-01T00:00:30Z") / 1000,
    },
  ]);
});
