import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { advanceGate } from "../../../reconciler/gates/advance.ts";
import { judgeGates } from "../../../reconciler/gates/hold.ts";
import { data, lost, noData, settledRecord, stored, viewOf } from "./builders.ts";
import { b, began, holdFor, type Kind, play, reasonFor, zones, zonesAt } from "./play.ts";

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

describe("a gate with an expression that was refused when it was tried", () => {
  const query = { expr: "up", url: "http://prometheus" };
  const check = { query, successWhen: "NoData", initialDelaySeconds: 0, periodSeconds: 10 };
  const traits = {
    spec: {
      checks: [
        { ...check, name: "fine" },
        { ...check, name: "tried" },
      ],
    },
  };
  const message = "check tried: BadQuery: parse error";
  const valid = { type: "Valid", status: "False", reason: "ExpressionInvalid", message } as const;
  const refused: Kind = (at) => ({ kind: "Error", code: "BadQuery", message: "parse error", at });
  const FINAL = "it is invalid, and opens only once it is corrected";
  const ROWS: readonly (readonly [name: string, answers: readonly [Kind, Kind], reason: string, says: string])[] = [
    ["may open by itself while no check has been answered", [lost, lost], "GateUnreachable", "it may be invalid"],
    ["may open by itself once a check has been answered", [noData, lost], "GateUnreachable", "it may be invalid"],
    ["is invalid if it is refused again", [noData, refused], "GateInvalid", FINAL],
  ];
  for (const [name, [fine, tried], reason, says] of ROWS)
    it(name, () => {
      const { record } = play(traits, [0, (at, which) => (which === "fine" ? fine : tried)(at, which)]);
      const condition = { ...valid, lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 1 };
      const gate = { ...stored(traits, record), conditions: [condition] };
      const held = judgeGates([gate], viewOf(zones, b, 1)).holds.get(b.uid);
      assert.equal(held?.reason, reason);
      assert.ok(held?.message.includes(says) && held.message.includes(message), held?.message);
      assert.equal(held?.until === undefined, says === FINAL);
    });
});
