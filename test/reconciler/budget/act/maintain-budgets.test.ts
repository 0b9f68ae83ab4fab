import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { reserved, setBudgetStage, startProcess, writeBudget } from "../../budget-stage.ts";
import { deploy, type Stage } from "../../stage.ts";
import { BUDGET_LIST, DELAYED, isWrite, LIST, readyTimes, startTicks } from "./ticks.ts";

let stage: Stage;
afterEach(() => stage.close());

describe("a settled cluster", () => {
  it("costs one list per tick, and one list of budgets per process", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const { tick } = startTicks(stage);
    assert.deepEqual(await tick(), [LIST, BUDGET_LIST]);
    assert.deepEqual(await tick(), [LIST]);
    await tick(true);
    assert.deepEqual(await tick(), [LIST]);
  });

  it("is checked once per process if a budget has a delay", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, DELAYED);
    const { tick } = startTicks(stage);
    await tick();
    assert.equal(Object.keys(readyTimes(stage)).length, 9);
    assert.deepEqual(await tick(), [LIST]);
  });

  it("lists no pods later either: every 30 s only the budgets, and the StatefulSets of budgets with a delay", async () => {
    stage = await setBudgetStage();
    for (const set of stage.emulator.store.list("statefulsets.apps", "default"))
      stage.emulator.store.update("statefulsets.apps", {
        ...set,
        metadata: { ...set.metadata, labels: { "rollout-group": "ingester" } },
      });
    writeBudget(stage, DELAYED);
    const { tick } = startTicks(stage);
    await tick();
    for (let i = 0; i < 3; i++) {
      await stage.time.advance(30_000);
      assert.deepEqual(await tick(), [LIST, BUDGET_LIST, LIST]);
      assert.deepEqual(await tick(), [LIST]);
    }
  });

  it("without the CRD costs no more, and logs that once", async () => {
    stage = await setBudgetStage({ crd: "none" });
    const { tick, lines } = startTicks(stage);
    await tick(true);
    await tick(true);
    assert.deepEqual(await tick(), [LIST]);
    assert.equal(lines.length, 1, lines.join());
  });
});

describe("expired reservations", () => {
  it("are removed by the tick; others are not", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, { maxUnavailable: 2 });
    deploy(stage, "x:1", { group: "other", zones: ["a"] });
    await stage.time.advance(2000);
    const one = startProcess(stage);
    await one.requestDisruption("zone-a-0");
    await one.requestDisruption("zone-a-1");
    const { tick } = startTicks(stage);
    await tick(true);
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0", "ingester-zone-a-1"]);
    stage.emulator.store.remove("pods", "default", "ingester-zone-a-0");
    await stage.time.advance(2000);
    await tick(true);
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-1"]);
    await stage.time.advance(120_000);
    await tick(true);
    assert.deepEqual(reserved(stage), {});
    assert.deepEqual((await tick(true)).filter(isWrite), []);
  });
});
