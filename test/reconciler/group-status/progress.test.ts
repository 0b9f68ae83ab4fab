import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PREVIOUS } from "../builders.ts";
import { decide, deleted, held, OLD } from "./builders.ts";

describe("the progress clock", () => {
  const begun = decide({ traits: [OLD, OLD, OLD], step: deleted });

  it("starts with a rollout, and counts pods and zones that are left", () => {
    assert.deepEqual(begun.progress, {
      stepsLeft: 12,
      startTime: "2026-01-01T00:00:00Z",
      lastStepTime: "2026-01-01T00:00:00Z",
      secondsPerPod: 0,
      estimatedCompletionTime: "2026-01-01T00:00:00Z",
    });
  });
  it("stands still while nothing moves, and so does the estimate", () => {
    const later = decide({ ...held("ZoneNotReady", [OLD, OLD, OLD]) }, begun, { after: 300 });
    assert.deepEqual(later.progress, begun.progress);
  });
  it("moves on with a pod that is updated or becomes ready", () => {
    const unready = decide(held("ZoneNotReady", [{ ...OLD, statusReady: 2 }]), begun, { after: 60 });
    const ready = decide(held("MaxUnavailableReached", [OLD]), unready, { after: 90 });
    assert.deepEqual([unready.progress?.lastStepTime, ready.progress?.lastStepTime], ["2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z"]);
  });
  it("starts again with another revision", () => {
    const again = decide(held("ZoneNotReady", [{ at: PREVIOUS, updateRevision: "newer" }]), begun, { after: 60 });
    assert.equal(again.progress?.startTime, "2026-01-01T00:01:00Z");
  });
  it("stops when the group is ready, and keeps its times", () => {
    const done = decide({}, begun, { after: 60 });
    const later = decide({}, done, { after: 600 });
    const expected = {
      stepsLeft: 0,
      startTime: "2026-01-01T00:00:00Z",
      lastStepTime: "2026-01-01T00:01:00Z",
      completionTime: "2026-01-01T00:01:00Z",
    };
    assert.deepEqual([done.progress, later.progress], [expected, expected]);
  });
  it("estimates the end by the pods' own ready times, as many at once as the zone allows, from the last step on", () => {
    const slow = (zone: string, seconds: number) => ({ zone, count: 3, pods: [], atOnce: 2, msPerPod: seconds * 1000 });
    const { progress } = decide({ traits: [OLD], step: deleted, plan: [slow("a", 60), slow("b", 120)] });
    assert.deepEqual([progress?.secondsPerPod, progress?.estimatedCompletionTime], [90, "2026-01-01T00:06:00Z"]);
  });
  it("estimates nothing if no pod shows how long it takes", () => {
    const unknown = { zone: "a", count: 3, pods: [], atOnce: 1, msPerPod: undefined };
    assert.equal(decide({ traits: [OLD], step: deleted, plan: [unknown] }).progress?.estimatedCompletionTime, undefined);
  });
});
