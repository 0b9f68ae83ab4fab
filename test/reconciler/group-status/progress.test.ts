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
      secondsPerPod: 1,
      estimatedCompletionTime: "2026-01-01T00:00:06Z",
    });
  });
  it("stands still while nothing moves", () => {
    const later = decide({ ...held("ZoneNotReady", [OLD, OLD, OLD]) }, begun, { after: 300 });
    assert.equal(later.progress?.lastStepTime, begun.progress?.lastStepTime);
  });
  it("moves on with a pod that is updated or becomes ready", () => {
    const unready = decide(held("ZoneNotReady", [{ ...OLD, statusReady: 2 }]), begun, { after: 60 });
    const ready = decide(held("MaxUnavailableReached", [OLD]), unready, { after: 90 });
    assert.deepEqual(
      [unready.progress?.lastStepTime, ready.progress?.lastStepTime],
      ["2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z"],
    );
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
  describe("the estimated end", () => {
    const slow = (zone: string, seconds: number, count = 3) => ({
      zone,
      count,
      pods: [],
      atOnce: 2,
      msPerPod: seconds * 1000,
    });
    const first = decide({ traits: [OLD], step: deleted, remaining: [slow("a", 60), slow("b", 120)] });
    const waiting = { ...held("MaxUnavailableReached"), remaining: [slow("a", 60, 1), slow("b", 120)] };
    const pod = { kind: "Pod", name: "a-0", isBroken: true } as const;
    const broken = { ...waiting, hold: waiting.hold && { ...waiting.hold, culprit: pod } };
    const endAfter = (seconds: number, given: Parameters<typeof decide>[0] = waiting) =>
      decide(given, first, { after: seconds }).progress?.estimatedCompletionTime;

    it("is that of as many pods at once as the zone allows, by the pods' own ready times", () =>
      assert.deepEqual(
        [first.progress?.secondsPerPod, first.progress?.estimatedCompletionTime],
        [90, "2026-01-01T00:06:00Z"],
      ));
    it("is the same while the pods of the last step become ready", () =>
      assert.equal(endAfter(20), "2026-01-01T00:06:00Z"));
    it("moves with pods that take longer, and is never past", () => {
      const late = { ...waiting, hold: waiting.hold && { ...waiting.hold, dedupKey: "another" } };
      assert.equal(endAfter(150, late), "2026-01-01T00:07:00Z");
    });
    for (const [name, given] of [
      ["that waits for longer than is ordinary", held("OtherZoneNotReady")],
      ["that waits for a gate", held("GateWaiting")],
      ["of which two zones are not ready", held("MultipleZonesNotReady")],
      ["that is paused", held("ZonePaused")],
      ["that is blocked", held("BudgetUnusable")],
      ["whose pod is broken", broken],
    ] as const)
      it(`is unknown for a group ${name}`, () =>
        assert.equal(endAfter(20, { ...given, remaining: waiting.remaining }), undefined));
  });
  it("estimates nothing if no pod shows how long it takes", () => {
    const unknown = { zone: "a", count: 3, pods: [], atOnce: 1, msPerPod: undefined };
    assert.equal(
      decide({ traits: [OLD], step: deleted, remaining: [unknown] }).progress?.estimatedCompletionTime,
      undefined,
    );
  });
});
