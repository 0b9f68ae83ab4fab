import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compareStatus } from "../../../reconciler/group-status/decide-status.ts";
import { decide, deleted, OLD } from "./builders.ts";

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
