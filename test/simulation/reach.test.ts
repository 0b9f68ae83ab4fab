import assert from "node:assert/strict";
import { it } from "node:test";
import { formatReach } from "./reach.ts";

it("a count of what was reached names each cell, and says how many there are", () => {
  const cells = new Map([
    ["hold GateFailed", 0],
    ["hold BudgetSpent", 300],
    ["fault throttled at reconciler LIST pods", 12],
  ]);
  assert.deepEqual(formatReach({ seeds: 300, cells }).split("\n"), [
    "12\tfault throttled at reconciler LIST pods",
    "300\thold BudgetSpent",
    "never\thold GateFailed",
    "2 of 3 cells were reached by 300 histories",
  ]);
});
