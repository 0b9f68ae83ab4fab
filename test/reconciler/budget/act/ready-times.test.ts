import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { createLog } from "../../../../infra/log.ts";
import { createBudgetMaintenance } from "../../../../reconciler/budget/act/maintain-budgets.ts";
import { setBudgetStage, startProcess, writeBudget } from "../../budget-stage.ts";
import { deploy, tickOnce, type Stage } from "../../stage.ts";
import { DELAYED, isWrite, LIST, readyTimes, setReady, startTicks } from "./ticks.ts";

let stage: Stage;
afterEach(() => stage.close());

describe("ready times of pods (E24)", () => {
  it("are written within the configured timeout", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, DELAYED);
    const { cluster } = stage.connect();
    const bounds = new Set<number | undefined>();
    const patch: typeof cluster.patch = (resource, one, call) => {
      bounds.add(call?.deadlineMs);
      return cluster.patch(resource, one, call);
    };
    const log = createLog({ level: "error", write: () => {}, now: () => new Date(stage.time.now()) });
    const options = { clock: stage.clock, log, onBudgets: () => {}, patchTimeoutMs: 1234 };
    await tickOnce(stage, cluster, {
      maintenance: createBudgetMaintenance({ ...options, cluster: { ...cluster, patch } }),
      isResyncDue: () => true,
    });
    assert.deepEqual([...bounds], [1234]);
  });

  it("are set when a pod is first seen ready, then unchanged, and removed when it is not ready", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, DELAYED);
    const { tick } = startTicks(stage);
    const first = new Date(stage.time.now()).toISOString().replace(".000", "");
    await tick(true);
    const all = readyTimes(stage);
    assert.equal(Object.keys(all).length, 9);
    assert.deepEqual([...new Set(Object.values(all))], [first]);

    await stage.time.advance(60_000);
    assert.deepEqual((await tick(true)).filter(isWrite), []);
    assert.deepEqual(readyTimes(stage), all);

    await setReady(stage, "ingester-zone-a-0", false);
    await tick();
    assert.equal("ingester-zone-a-0" in readyTimes(stage), false);
    await setReady(stage, "ingester-zone-a-0", true);
    await tick();
    assert.notEqual(readyTimes(stage)["ingester-zone-a-0"], undefined);
    assert.notEqual(readyTimes(stage)["ingester-zone-a-0"], first);
  });

  it("are written only on pods under a budget", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, { selector: { matchLabels: { "rollout-group": "other" } } });
    assert.deepEqual((await startTicks(stage).tick(true)).filter(isWrite), []);
    assert.deepEqual(readyTimes(stage), {});
  });

  it("a pod that was deleted meanwhile is no error", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    stage.emulator.faults.inject({ effect: { kind: "conflict" }, resource: "pods", verb: "patch", times: 3 });
    const { tick, lines } = startTicks(stage);
    await tick(true);
    assert.equal(Object.keys(readyTimes(stage)).length, 6);
    assert.deepEqual(lines, []);
    await tick();
    assert.equal(Object.keys(readyTimes(stage)).length, 9);
  });

  it("are not written on a new pod of the same name, and that logs no warning", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const { cluster, calls } = stage.connect();
    const late: typeof cluster = {
      ...cluster,
      patch: (resource, patch, call) => {
        const { store } = stage.emulator;
        const before = store.get("pods", "default", patch.name);
        if (before && patch.name === "ingester-zone-a-0") {
          store.remove("pods", "default", patch.name, { gracePeriodSeconds: 0 });
          store.create("pods", { ...before, metadata: { ...before.metadata, uid: "another" } });
        }
        return cluster.patch(resource, patch, call);
      },
    };
    stage = { ...stage, connect: () => ({ cluster: late, calls }) };
    const { tick, lines } = startTicks(stage);
    await tick(true);
    assert.equal(Object.keys(readyTimes(stage)).length, 8);
    assert.deepEqual(lines, []);
  });

  it("are also maintained in paused zones", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, DELAYED);
    const { store } = stage.emulator;
    for (const set of store.list("statefulsets.apps", "default"))
      store.update("statefulsets.apps", {
        ...set,
        metadata: { ...set.metadata, annotations: { "grafana.com/rollout-paused": "true" } },
      });
    deploy(stage, "x:2", { podLabels: { "rollout-group": "ingester" } });
    await stage.time.advance(500);
    const { tick } = startTicks(stage);
    await tick();
    assert.equal(Object.keys(readyTimes(stage)).length, 9);
    assert.deepEqual(await tick(), [LIST]);
    await setReady(stage, "ingester-zone-a-0", false);
    await tick();
    assert.equal(Object.keys(readyTimes(stage)).length, 8);
  });

  it("allow an eviction once the delay is over (E23)", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, DELAYED);
    const one = startProcess(stage);
    const [soon, now] = ["2 pods not ready in partition 0", "Allowed"];
    assert.equal(await one.requestDisruption("zone-a-0"), soon);
    await startTicks(stage).tick(true);
    await stage.time.advance(60_000);
    assert.equal(await one.requestDisruption("zone-a-0"), soon);
    await stage.time.advance(1000);
    assert.equal(await one.requestDisruption("zone-a-0"), now);
  });
});

it("after an API error the rest of the zone is not requested", async () => {
  stage = await setBudgetStage();
  writeBudget(stage);
  deploy(stage, "x:1", { podLabels: { "rollout-group": "ingester" }, replicas: 30 });
  await stage.time.advance(5000);
  stage.emulator.faults.inject({ effect: { kind: "error" }, resource: "pods", verb: "patch" });
  const { tick, lines } = startTicks(stage);
  assert.equal((await tick(true)).filter(isWrite).length, 8, "as many as are under way at once, of 90");
  assert.equal(lines.length, 8);
  stage.emulator.faults.clear();
  await tick();
  assert.equal(Object.keys(readyTimes(stage)).length, 90);
});
