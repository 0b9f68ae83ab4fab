import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { advanceGate } from "../../../reconciler/gates/advance.ts";
import { judgeGates } from "../../../reconciler/gates/hold.ts";
import { data, noData, settledRecord, stored, viewOf } from "./builders.ts";
import { b, began, holdFor, play, reasonFor, zones, zonesAt } from "./play.ts";

describe("several gates", () => {
  it("must all have passed; the first that has not holds", () => {
    const { record } = play({}, [0, noData], [10, noData], [11, noData]);
    const gates = [stored({ name: "one" }, record), stored({ name: "two" }, settledRecord(zonesAt("1")))];
    const held = judgeGates(gates, viewOf(zones, b, 10)).holds.get(b.uid);
    assert.deepEqual([held?.reason, held?.objects.map(({ name }) => name)], ["GateWaiting", ["zone-b", "two"]]);
  });

  it("name the one whose checks are waited for, not one that only records its pass", () => {
    const passed = stored({ name: "one" }, play({}, [0, noData], [10, noData]).record);
    const waiting = stored({ name: "two" }, play({}, [0, data]).record);
    const held = judgeGates([passed, waiting], viewOf(zones, b, 11)).holds.get(b.uid);
    assert.deepEqual([held?.objects[1]?.name, held?.isBrief], ["two", undefined]);
    assert.equal(judgeGates([passed], viewOf(zones, b, 11)).holds.get(b.uid)?.isBrief, true);
  });

  it("let a zone begin together: one that has passed asks on as long as another one holds", () => {
    const { record } = play({}, [0, noData], [10, noData]);
    const view = { ...viewOf(zones, b, 21), isHeld: true };
    const { due, record: next } = advanceGate(stored({}, record), view, new Map([["errors", data(view.now)]]));
    assert.deepEqual([began(next), reasonFor({}, next, 22)], ["a", "GateWaiting"]);
    assert.deepEqual(due, [], "the answer counts for a period");
    assert.equal(advanceGate(stored({}, record), view, new Map()).due.length, 1);
  });

  it("say why they hold, since when, and when they ask next", () => {
    const { record } = play({}, [0, data]);
    assert.equal(
      holdFor({}, record, 1)?.message,
      'zone-b waits for gate gate: check "errors" fails (errors{} 7); since 2026-01-01T00:00:00Z, next check at 2026-01-01T00:00:10Z',
    );
  });
});
