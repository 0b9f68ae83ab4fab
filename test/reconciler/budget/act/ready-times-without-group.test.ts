import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { setBudgetStage, startProcess, writeBudget } from "../../budget-stage.ts";
import { deploy, type Stage } from "../../stage.ts";
import { BUDGET_LIST, DELAYED, isWrite, LIST, POD_LIST, readyTimes, setReady, startTicks } from "./ticks.ts";

let stage: Stage;
afterEach(() => stage.close());

describe("pods of StatefulSets in no rollout group", () => {
  const STORE = { ...DELAYED, selector: { matchLabels: { app: "store" } } };
  const PODS = ["a", "b"].flatMap((zone) => [0, 1, 2].map((i) => `store-zone-${zone}-${i}`));

  /** Two StatefulSets of three pods outside the stage's group. */
  async function deployStore(): Promise<void> {
    stage = await setBudgetStage();
    const { store } = stage.emulator;
    deploy(stage, "x:1", { group: "store", zones: ["a", "b"], podLabels: { app: "store" } });
    for (const zone of ["a", "b"]) {
      const set = store.get("statefulsets.apps", "default", `store-zone-${zone}`);
      assert.ok(set);
      store.update("statefulsets.apps", { ...set, metadata: { ...set.metadata, labels: { app: "store" } } });
    }
    await stage.time.advance(2000);
  }

  for (const namespaces of [["default"], [""]]) {
    it(`get ready times under a budget with a delay, so that evictions are allowed (namespaces ${namespaces[0] || "*"})`, async () => {
      await deployStore();
      writeBudget(stage, STORE, "store");
      const { tick } = startTicks(stage);
      await tick(false, namespaces);
      assert.deepEqual(Object.keys(readyTimes(stage)).toSorted(), PODS);
      await stage.time.advance(62_000);
      const { reserver } = startProcess(stage);
      const { verdict } = await reserver.reserve({
        namespace: "default",
        name: "store-zone-a-0",
        dryRun: false,
        deadlineAt: Infinity,
      });
      assert.equal(verdict.reason, "Allowed");
    });
  }

  it("are checked every 30 s, and lose their ready times when they are not ready", async () => {
    await deployStore();
    writeBudget(stage, STORE, "store");
    const { tick } = startTicks(stage);
    await tick();
    const first = readyTimes(stage);
    await setReady(stage, "store-zone-b-1", false);
    assert.deepEqual([await tick(), readyTimes(stage)], [[LIST], first], "not before 30 s are over");
    await stage.time.advance(30_000);
    const calls = await tick();
    assert.deepEqual(
      Object.keys(readyTimes(stage)).toSorted(),
      PODS.filter((pod) => pod !== "store-zone-b-1"),
    );
    assert.deepEqual(
      calls.toSorted(),
      [LIST, LIST, LIST, POD_LIST, BUDGET_LIST, "PATCH core/v1/pods object"].toSorted(),
    );
  });

  it("are read once for budgets of the same selector", async () => {
    await deployStore();
    const readsOfTick = async (): Promise<string[]> =>
      (await startTicks(stage).tick()).filter((call) => !isWrite(call)).toSorted();
    writeBudget(stage, STORE, "store");
    const one = await readsOfTick();
    for (let i = 0; i < 20; i++) writeBudget(stage, STORE, `store-${i}`);
    assert.deepEqual(await readsOfTick(), one);
    assert.deepEqual(Object.keys(readyTimes(stage)).toSorted(), PODS);
  });

  it("are read for 8 budgets at a time for at most 5 s: the rest follow in the next ticks", async () => {
    await deployStore();
    for (let i = 0; i < 20; i++)
      writeBudget(stage, { ...DELAYED, selector: { matchLabels: { app: `store-${i}` } } }, `store-${i}`);
    const { cluster, calls } = stage.connect();
    const late = Promise.withResolvers<void>();
    let [underWay, most] = [0, 0];
    const list: typeof cluster.list = async function* (resource, query, call) {
      const isUnderBudget = query.labelSelector?.startsWith("app=store-") === true;
      if (isUnderBudget) most = Math.max(most, ++underWay);
      if (isUnderBudget && underWay === 8) await stage.time.advance(5000).then(late.resolve);
      if (isUnderBudget) await late.promise;
      yield* cluster.list(resource, query, call);
      if (isUnderBudget) underWay--;
    };
    stage = { ...stage, connect: () => ({ cluster: { ...cluster, list }, calls }) };
    const { tick } = startTicks(stage);
    assert.deepEqual((await tick()).filter((call) => call === LIST).length, 1 + 8);
    assert.deepEqual((await tick()).filter((call) => call === LIST).length, 1 + 12);
    assert.deepEqual([await tick(), most], [[LIST], 8]);
  });

  it("are no longer checked once the budget has no delay", async () => {
    await deployStore();
    writeBudget(stage, { ...STORE, crossZoneEvictionDelay: undefined }, "store");
    const { tick } = startTicks(stage);
    assert.deepEqual(await tick(), [LIST, BUDGET_LIST]);
    assert.deepEqual(readyTimes(stage), {});
  });

  it("that cannot be read or written do not hold the groups", async () => {
    await deployStore();
    writeBudget(stage, STORE, "store");
    stage.emulator.faults.inject({ effect: { kind: "error" }, resource: "pods", verb: "patch" });
    const { tick, lines } = startTicks(stage);
    await tick();
    assert.deepEqual(readyTimes(stage), {});
    assert.match(lines.join(), /ready time of a pod could not be written/);
    stage.emulator.faults.clear();
    stage.emulator.faults.inject({ effect: { kind: "error" }, resource: "pods", verb: "list" });
    await stage.time.advance(30_000);
    await tick();
    assert.match(lines.join(), /ready times under a disruption budget could not be written/);
    stage.emulator.faults.clear();
    await stage.time.advance(30_000);
    await tick();
    assert.equal(Object.keys(readyTimes(stage)).length, 6);
  });
});
