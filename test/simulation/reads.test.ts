/** The oracle of what is read before a deletion, against histories that it must condemn, and those next to them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createReadSafety } from "./reads.ts";

type Request = readonly [appliedAt: number, sentAt: number, method: string, path: string];

const SETS = "/apis/apps/v1/namespaces/zonewise/statefulsets";
const listed = (at: number): Request => [at + 2, at, "GET", `${SETS}?labelSelector=x`];
const watched = (at: number): Request => [at + 2, at, "GET", `${SETS}?watch=true`];
const confirmed = (at: number, set = "a"): Request => [at + 2, at, "PATCH", `${SETS}/${set}/status?timeout=1ms`];
const deleted = (at: number, set = "a"): Request => [at + 2, at, "DELETE", `/api/v1/namespaces/zonewise/pods/${set}-0`];

const CASES: readonly (readonly [string, readonly Request[], RegExp | undefined])[] = [
  ["a deletion of a zone that was listed and confirmed", [listed(0), confirmed(10), deleted(20)], undefined],
  ["one of a zone that was not confirmed", [listed(0), confirmed(10, "b"), deleted(20)], /that it has not confirmed/],
  [
    "one of a zone that was confirmed before the last batch",
    [listed(0), confirmed(10), listed(50_000), deleted(50_020)],
    /that it has not confirmed/,
  ],
  ["a second one after another list", [listed(0), confirmed(10), deleted(20), listed(30), deleted(40)], undefined],
  [
    "a second one without it",
    [listed(0), confirmed(10), deleted(20), watched(30), deleted(40)],
    /without another list/,
  ],
  ["a first one by an old list", [listed(0), confirmed(2000), deleted(2010)], /by a list that was 2002 ms old/],
  ["one that was listed again", [listed(0), confirmed(2000), listed(2010), deleted(2020)], undefined],
];

function judge(requests: readonly Request[], stoodStillMs = 0, actor = "reconciler-1"): readonly string[] {
  let now = 0;
  const violations: string[] = [];
  const process = { name: "reconciler-1", stoodStillMs: () => stoodStillMs };
  const reads = createReadSafety({
    violated: (what) => violations.push(what),
    now: () => now,
    processes: () => [process as never],
    suspends: false,
  });
  for (const [appliedAt, sentAt, method, path] of requests) {
    now = appliedAt;
    reads.onRequest({ actor, call: `${method} ${path}`, sentAt }, method, path);
  }
  return violations;
}

describe("the oracle of reads", () => {
  for (const [name, requests, expected] of CASES)
    it(`${expected ? "condemns" : "allows"} ${name}`, () =>
      expected ? assert.match(judge(requests).join(), expected) : assert.deepEqual(judge(requests), []));

  it("allows a process that stood still to be late", () =>
    assert.deepEqual(judge([listed(0), confirmed(10), listed(50_000), deleted(50_020)], 1), []));
  it("judges reconcilers alone", () => assert.deepEqual(judge([deleted(0)], 0, "human"), []));
});
