import assert from "node:assert/strict";
import { it } from "node:test";
import type { GroupState } from "../../../cli/decide/group-state.ts";
import { judgeAll, leaveOutDone, sortByNeed, type Overview } from "../../../cli/decide/overview.ts";

const GROUPS = { a: "Ready", b: "RollingOut", c: "Ready", d: "Blocked", e: "Waiting" } as const;

const stateOf = ([group, phase]: readonly [string, string]): GroupState => ({
  namespace: "test",
  group,
  zones: [],
  status: { observedGeneration: 1, phase: phase as "Ready" },
  generation: 1,
});

const overview: Overview = {
  groups: Object.entries(GROUPS).map(stateOf),
  phased: [],
  noTicks: [],
  unprotected: [],
};
const namesOf = ({ groups }: Overview): string => groups.map(({ group }) => group).join("");

it("what is blocked comes first, then what waits, what moves, what is done", () =>
  assert.equal(namesOf(sortByNeed(overview)), "debac"));

it("what is blocked longest comes first", () => {
  const [a, d] = ["a", "d"].map((name, i) => {
    const state = stateOf([name, "Blocked"]);
    return { ...state, status: { ...state.status, holds: [{ since: `2026-01-0${2 - i}T00:00:00Z` }] as never } };
  });
  assert.equal(namesOf(sortByNeed({ ...overview, groups: [a, d] as GroupState[] })), "da");
});

it("what is done is left out, and counted", () => {
  const left = leaveOutDone(sortByNeed(overview));
  assert.deepEqual([namesOf(left), left.done], ["deb", 2]);
});

it("done is not said before the first tick, nor that nothing ticks", () => {
  const noTicks = [{ state: "unknown", reason: "NotYet", message: "", remedy: "" }] as const;
  const done = [["a", "Ready"] as const].map(stateOf);
  assert.equal(judgeAll({ ...overview, groups: done }), "done");
  assert.equal(judgeAll({ ...overview, groups: done, noTicks }), "going");
  assert.equal(judgeAll({ ...overview, groups: [], noTicks }), "done");
  assert.equal(judgeAll({ ...overview, noTicks }), "blocked");
});
