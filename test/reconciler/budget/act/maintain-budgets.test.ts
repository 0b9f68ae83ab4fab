import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { reserved, setBudgetStage, startProcess, writeBudget } from "../../budget-stage.ts";
import { deploy, type Stage } from "../../stage.ts";
import { BUDGET_LIST, DELAYED, isWrite, LIST, POD_LIST, setReady, startTicks } from "./ticks.ts";
import { amend } from "../../../builders.ts";

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

  it("costs no more under a budget with a delay, neither at once nor every 30 s: nothing is written to pods", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, DELAYED);
    const { tick } = startTicks(stage);
    await tick();
    for (let i = 0; i < 3; i++) {
      await stage.time.advance(30_000);
      assert.deepEqual(await tick(), [LIST, BUDGET_LIST]);
      assert.deepEqual(await tick(), [LIST]);
      assert.deepEqual((await tick(true)).filter(isWrite), []);
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

  it("of a settled group are removed once their time is over, by one write, without a list of pods", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const at = (seconds: number): string => new Date(stage.time.now() - seconds * 1000).toISOString();
    const disruptedPods = {
      "ingester-zone-a/1": { kind: "downscale", uid: "left", from: 2, pinned: true, time: at(100), by: "reconciler" },
      "ingester-zone-b-0": { kind: "eviction", uid: "young", pinned: true, time: at(100), by: "functions" },
    };
    amend(stage.emulator.store, "ZoneAwarePodDisruptionBudget", "ingester", { status: { disruptedPods } });
    const { tick } = startTicks(stage);
    const calls = await tick();
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-b-0"]);
    assert.deepEqual([calls.filter(isWrite).length, calls.includes(POD_LIST)], [1, false]);
    await stage.time.advance(30_000);
    await tick();
    assert.deepEqual(reserved(stage), {});
    await stage.time.advance(30_000);
    assert.deepEqual((await tick()).filter(isWrite), []);
  });
});

describe("a delay between zones", () => {
  it("counts from when the pods of the other zones became ready, and again when they do so again, without a tick", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, DELAYED);
    const one = startProcess(stage);
    const SOON = "1 pod not ready in partition 0";
    await stage.time.advance(62_000);
    await setReady(stage, "ingester-zone-b-0", false);
    assert.equal(await one.requestDisruption("zone-a-0"), SOON);
    await setReady(stage, "ingester-zone-b-0", true);
    assert.equal(await one.requestDisruption("zone-a-0"), SOON);
    await stage.time.advance(58_000);
    assert.equal(await one.requestDisruption("zone-a-0"), SOON);
    await stage.time.advance(3000);
    assert.equal(await one.requestDisruption("zone-a-0"), "Allowed");
  });
});
