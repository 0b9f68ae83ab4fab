/** Budgets and gates in a look ahead. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { simulate } from "../../../reconciler/simulation/simulate.ts";
import { OUTDATED, withBudget, zonesOf } from "../../cli/decide/worlds.ts";
import { gateOf } from "../gates/builders.ts";
import { worldOf } from "./builders.ts";

it("a budget of one pod makes batches of one, whatever the rollout may take at once", () => {
  const { steps, end } = simulate(withBudget([OUTDATED, {}, {}], { maxUnavailable: 1 }), 100);
  assert.deepEqual(
    steps.map(({ pods = [] }) => pods.length),
    [1, 1, 1, 0],
  );
  assert.equal(end, "settled");
});

it("a reservation of an eviction in another zone is waited for, until it expires", () => {
  const world = withBudget([OUTDATED, {}, {}], {});
  const reserved = { uid: "uid-ingester-zone-b-0", time: new Date(world.now - 60_000).toISOString(), by: "webhook_x" };
  const budgets = world.budgets.map((budget) => ({ ...budget, reservations: { "ingester-zone-b-0": reserved } }));
  const [first] = simulate({ ...world, budgets }, 1).steps;
  assert.deepEqual([first?.waits, first?.waitMs], [["BudgetSpent"], 60_000]);
});

it("a gate between zones adds the time of its checks, which are taken to pass", () => {
  const zones = zonesOf(OUTDATED, OUTDATED);
  const { steps, end } = simulate(worldOf(zones, { gates: [gateOf()] }), 100);
  assert.equal(end, "settled");
  const next = steps.find(({ zone, action }) => zone === "ingester-zone-b" && action === "ReplacePods");
  assert.deepEqual(next?.waits, ["GateWaiting"]);
  // Two successes in a row, ten seconds apart.
  assert.equal(next?.waitMs, 10_000);
});
