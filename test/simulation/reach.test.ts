import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatReach, lostCells, mergeReach, parseReach, type Reach } from "./reach.ts";

const reach = (seeds: number, cells: Readonly<Record<string, number>>): Reach => ({
  seeds,
  cells: new Map(Object.entries(cells)),
});

describe("a record of what was reached", () => {
  it("is read as it was written", () => {
    const given = reach(300, {
      "fault stale at reconciler LIST pods": 12,
      "hold BudgetSpent": 300,
      "hold GateFailed": 0,
    });
    assert.deepEqual(parseReach(formatReach(given)), given);
  });

  it("says why what was never reached was not", () => {
    assert.match(formatReach(reach(3, { "hold GateFailed": 0 })), /^never\thold GateFailed\t\S/m);
  });

  for (const [name, recorded, seeds, now, lost] of [
    ["a cell that most seeds reached", 200, 100, 0, true],
    ["a cell that most seeds reached, and one still does", 200, 100, 1, false],
    ["a cell that too few seeds reached to expect it of so many", 8, 100, 0, false],
    ["the same of more seeds", 8, 400, 0, true],
    ["a cell that was never reached", 0, 1000, 0, false],
  ] as const)
    it(`${lost ? "misses" : "does not miss"} ${name}`, () => {
      const found = lostCells(reach(300, { "hold BudgetSpent": recorded }), reach(seeds, { "hold BudgetSpent": now }));
      assert.deepEqual(found, lost ? ["hold BudgetSpent"] : []);
    });

  it("counts what its parts have reached together", () => {
    const parts = [reach(30, { "hold A": 3, "hold B": 0 }), reach(20, { "hold A": 1, "hold C": 5 })];
    assert.deepEqual(mergeReach(parts), reach(50, { "hold A": 4, "hold B": 0, "hold C": 5 }));
  });

  it("misses a cell that exists no more", () =>
    assert.deepEqual(lostCells(reach(300, { "hold Old": 300 }), reach(100, {})), ["hold Old"]));
});
