/** What goes on from tick to tick, and from process to process: the clock, the counts, the rollout that was seen, the name. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compareStatus } from "../../../reconciler/group-status/decide-status.ts";
import { nameOfGroup } from "../../../reconciler/group-status/status.ts";
import { describeZone, recallSeen } from "../../../reconciler/group-status/zones.ts";
import { revisionKey } from "../../../reconciler/report/log-lines.ts";
import { zone } from "../../builders/groups.ts";
import { OLD, PREVIOUS } from "../../builders/zones.ts";
import { decide, deleted, held } from "./facts.ts";

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

describe("the totals", () => {
  const first = decide({ traits: [OLD], step: deleted, replaced: 2 }, {}, { passes: 100, tookMs: 250 });

  it("count the first reconcile", () =>
    assert.deepEqual(first.totals, {
      reconciles: 1,
      passes: 100,
      failures: 0,
      podsReplaced: 2,
      timed: 1,
      timedWithin: [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1],
      seconds: 0.25,
      failing: false,
      lastSuccessTime: "2026-01-01T00:00:00Z",
    }));
  it("count the ticks in which nothing was written as well", () => {
    const next = decide({ state: "failed", failing: true }, first, { passes: 112, tookMs: 1000, after: 60 });
    const counted = {
      reconciles: 13,
      passes: 112,
      failures: 1,
      timed: 2,
      timedWithin: [0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2],
      seconds: 1.25,
    };
    assert.deepEqual(next.totals, { ...first.totals, ...counted, failing: true });
  });
  it("count durations by bucket, also on from a status without buckets", () => {
    const { timedWithin: _, ...older } = first.totals ?? assert.fail("no totals");
    const next = decide({}, { ...first, totals: older }, { passes: 101, tookMs: 20_000 });
    assert.deepEqual([next.totals?.timed, next.totals?.timedWithin], [2, Array.from({ length: 11 }, () => 0)]);
  });
  it("never go back, also if the count of ticks was lost with its Lease", () => {
    const next = decide({}, first, { passes: 3 });
    assert.deepEqual([next.totals?.reconciles, next.totals?.passes], [2, 3]);
  });
  it("of a group that was settled and stays so need no write", () => {
    const settled = decide({}, first, { passes: 101 });
    const later = decide({}, settled, { passes: 500, tookMs: 3, after: 600 });
    assert.equal(later.totals?.reconciles, 401);
    assert.equal(compareStatus(settled, later), "none");
  });
  it("that only count a failure are details", () => {
    const failing = decide({ state: "failed", failing: true }, first, { passes: 101 });
    assert.equal(
      compareStatus(failing, decide({ state: "failed", failing: true }, failing, { passes: 102 })),
      "details",
    );
  });
  it("stay as they are while the group has no zones", () =>
    assert.deepEqual(decide({ traits: [] }, first).totals, first.totals));
});

const whole = zone({ name: "zone-a" });
const { status } = whole;
const at = (change: Partial<typeof status>) => describeZone({ ...whole, status: { ...status, ...change } });

const CASES: readonly [name: string, row: ReturnType<typeof at>, unfinished: boolean, rolling: boolean][] = [
  ["a zone that was to be recorded", at({ currentRevision: PREVIOUS }), true, true],
  ["one of which no pod was replaced yet", at({ currentRevision: PREVIOUS, updated: 0 }), true, false],
  ["one that was recorded", at({}), false, false],
  ["one whose template was taken back", at({ updated: 1 }), false, true],
  ["one with another template", at({ currentRevision: PREVIOUS, updateRevision: "other" }), false, true],
  ["another zone", { ...at({ currentRevision: PREVIOUS }), name: "zone-b" }, false, true],
];

describe("a process learns of the rollout before it, from the status that is stored:", () => {
  for (const [name, row, unfinished, rolling] of CASES)
    it(name, () =>
      assert.deepEqual(recallSeen([row], [whole]), {
        rolling,
        unfinished: new Set(unfinished ? [revisionKey(whole)] : []),
      }),
    );
  it("nothing of a status without zones", () =>
    assert.deepEqual(recallSeen(undefined, [whole]), { rolling: false, unfinished: new Set() }));
});

describe("the name of a RolloutGroup", () => {
  for (const [label, name] of [
    ["ingester", "ingester"],
    ["store.gateway-2", "store.gateway-2"],
    ["Ingester", /^group-ingester-[0-9a-f]{8}$/],
    ["a_b", /^group-a-b-[0-9a-f]{8}$/],
    ["", /^group-[0-9a-f]{8}$/],
  ] as const)
    it(`of "${label}" is ${String(name)}`, () =>
      typeof name === "string" ? assert.equal(nameOfGroup(label), name) : assert.match(nameOfGroup(label), name));
  it("tells groups apart that differ only in capitals", () => assert.notEqual(nameOfGroup("Ab"), nameOfGroup("aB")));
});
