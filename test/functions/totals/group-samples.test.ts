import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sampleGroups } from "../../../functions/totals/group-samples.ts";
import { METRICS } from "../../../infra/metrics/metric-table.ts";
import type { GroupPhase } from "../../../reconciler/group-status/status.ts";

const TIME = "2026-01-01T00:00:00Z";

/** The series of the progress clock. */
function clockOf(phase: GroupPhase, reason?: string): number {
  const blocked = reason === undefined ? [] : [{ reason, message: "", cause: "", objects: [], since: TIME }];
  const status = { group: "ingester", phase, blocked, progress: { stepsLeft: 1, startTime: TIME, lastStepTime: TIME } };
  const samples = sampleGroups([{ namespace: "cache", status }], { passes: 1, series: new Map() }, 10);
  return samples.get(METRICS.lastStep.name)?.length ?? 0;
}

describe("the progress clock", () => {
  for (const [name, shown, phase, reason] of [
    ["a group that rolls", 1, "RollingOut", undefined],
    ["a group that waits for a pod", 1, "Waiting", "ZoneNotReady"],
    ["a group that failed to reconcile", 1, "RollingOut", "ReconcileFailed"],
    ["a group whose gate has failed", 1, "Waiting", "GateFailed"],
    ["a group that is ready", 0, "Ready", undefined],
    ["a group that is paused", 0, "Paused", "ZonePaused"],
    ["a group that waits for a gate, as a user asked", 0, "Waiting", "GateWaiting"],
  ] as const)
    it(`${shown === 1 ? "runs" : "does not run"} for ${name}`, () => assert.equal(clockOf(phase, reason), shown));
});
