import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { createLog } from "../../../infra/log.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { observeBudgets } from "../../../reconciler/reservations/observe-budgets.ts";
import { createBudgetMaintenance, type BudgetMaintenance } from "../../../reconciler/maintenance/maintain-budgets.ts";
import { reserved, setBudgetStage, startProcess, writeBudget } from "../budget-stage.ts";
import { deploy, tickOnce, type Stage } from "../stage.ts";

const LIST = "GET apps/v1/statefulsets collection";
const BUDGET_LIST = "GET rollout-operator.grafana.com/v1/zoneawarepoddisruptionbudgets collection";
const POD_LIST = "GET core/v1/pods collection";
const DELAYED = { podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)", crossZoneEvictionDelay: "1m" };

let stage: Stage;
afterEach(() => stage.close());

/** A reconciler process: its ticks, its calls and its log. */
function startTicks() {
  const { cluster, calls } = stage.connect();
  const lines: string[] = [];
  const log = createLog({ level: "info", write: (line) => void lines.push(line), now: () => new Date(stage.time.now()) });
  const onBudgets = observeBudgets({ log, metrics: createMetrics().budgets, record: () => {} });
  const maintenance: BudgetMaintenance = createBudgetMaintenance({ cluster, clock: stage.clock, log, onBudgets, patchTimeoutMs: 5000 });
  return {
    lines,
    /** Runs one tick; resolves with its API calls. */
    tick: async (closer = false, namespaces: readonly string[] = ["default"]): Promise<string[]> => {
      calls.length = 0;
      await tickOnce(stage, cluster, { maintenance, namespaces, isResyncDue: () => closer });
      return [...calls];
    },
  };
}

/** The ready times, by pod. */
function readyTimes(): Record<string, string | undefined> {
  const pods = stage.emulator.store
    .list("pods", "default")
    .map(({ metadata }) => [metadata.name, metadata.annotations?.["grafana.com/ready-time"]]);
  return Object.fromEntries(pods.filter(([, time]) => time !== undefined)) as Record<string, string | undefined>;
}

const isWrite = (call: string): boolean => !call.startsWith("GET");

/** Sets the pod's Ready condition. */
async function setReady(pod: string, ready: boolean): Promise<void> {
  const { store } = stage.emulator;
  const object = store.get("pods", "default", pod);
  assert.ok(object);
  store.update("pods", {
    ...object,
    metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, "sim/ready": String(ready) } },
  });
  await stage.time.advance(1000);
}

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
    const { tick } = startTicks();
    const first = new Date(stage.time.now()).toISOString().replace(".000", "");
    await tick(true);
    const all = readyTimes();
    assert.equal(Object.keys(all).length, 9);
    assert.deepEqual([...new Set(Object.values(all))], [first]);

    await stage.time.advance(60_000);
    assert.deepEqual((await tick(true)).filter(isWrite), []);
    assert.deepEqual(readyTimes(), all);

    await setReady("ingester-zone-a-0", false);
    await tick();
    assert.equal("ingester-zone-a-0" in readyTimes(), false);
    await setReady("ingester-zone-a-0", true);
    await tick();
    assert.notEqual(readyTimes()["ingester-zone-a-0"], undefined);
    assert.notEqual(readyTimes()["ingester-zone-a-0"], first);
  });

  it("are written only on pods under a budget", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, { selector: { matchLabels: { "rollout-group": "other" } } });
    assert.deepEqual((await startTicks().tick(true)).filter(isWrite), []);
    assert.deepEqual(readyTimes(), {});
  });

  it("a pod that was deleted meanwhile is no error", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    stage.emulator.faults.inject({ effect: { kind: "conflict" }, resource: "pods", verb: "patch", times: 3 });
    const { tick, lines } = startTicks();
    await tick(true);
    assert.equal(Object.keys(readyTimes()).length, 6);
    assert.deepEqual(lines, []);
    await tick();
    assert.equal(Object.keys(readyTimes()).length, 9);
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
    const { tick, lines } = startTicks();
    await tick(true);
    assert.equal(Object.keys(readyTimes()).length, 8);
    assert.deepEqual(lines, []);
  });

  it("are also maintained in paused zones", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, DELAYED);
    const { store } = stage.emulator;
    for (const set of store.list("statefulsets.apps", "default"))
      store.update("statefulsets.apps", { ...set, metadata: { ...set.metadata, annotations: { "grafana.com/rollout-paused": "true" } } });
    deploy(stage, "x:2", { podLabels: { "rollout-group": "ingester" } });
    await stage.time.advance(500);
    const { tick } = startTicks();
    await tick();
    assert.equal(Object.keys(readyTimes()).length, 9);
    assert.deepEqual(await tick(), [LIST]);
    await setReady("ingester-zone-a-0", false);
    await tick();
    assert.equal(Object.keys(readyTimes()).length, 8);
  });

  it("allow an eviction once the delay is over (E23)", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, DELAYED);
    const one = startProcess(stage);
    const [soon, now] = ["2 pods not ready in partition 0", "Allowed"];
    assert.equal(await one.requestDisruption("zone-a-0"), soon);
    await startTicks().tick(true);
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
  const { tick, lines } = startTicks();
  assert.equal((await tick(true)).filter(isWrite).length, 8, "as many as are under way at once, of 90");
  assert.equal(lines.length, 8);
  stage.emulator.faults.clear();
  await tick();
  assert.equal(Object.keys(readyTimes()).length, 90);
});

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
      const { tick } = startTicks();
      await tick(false, namespaces);
      assert.deepEqual(Object.keys(readyTimes()).toSorted(), PODS);
      await stage.time.advance(62_000);
      const { reserver } = startProcess(stage);
      const { verdict } = await reserver.reserve({ namespace: "default", name: "store-zone-a-0", dryRun: false, deadlineAt: Infinity });
      assert.equal(verdict.reason, "Allowed");
    });
  }

  it("are checked every 30 s, and lose their ready times when they are not ready", async () => {
    await deployStore();
    writeBudget(stage, STORE, "store");
    const { tick } = startTicks();
    await tick();
    const first = readyTimes();
    await setReady("store-zone-b-1", false);
    assert.deepEqual([await tick(), readyTimes()], [[LIST], first], "not before 30 s are over");
    await stage.time.advance(30_000);
    const calls = await tick();
    assert.deepEqual(
      Object.keys(readyTimes()).toSorted(),
      PODS.filter((pod) => pod !== "store-zone-b-1"),
    );
    assert.deepEqual(calls.toSorted(), [LIST, LIST, LIST, POD_LIST, BUDGET_LIST, "PATCH core/v1/pods object"].toSorted());
  });

  it("are read once for budgets of the same selector", async () => {
    await deployStore();
    const readsOfTick = async (): Promise<string[]> => (await startTicks().tick()).filter((call) => !isWrite(call)).toSorted();
    writeBudget(stage, STORE, "store");
    const one = await readsOfTick();
    for (let i = 0; i < 20; i++) writeBudget(stage, STORE, `store-${i}`);
    assert.deepEqual(await readsOfTick(), one);
    assert.deepEqual(Object.keys(readyTimes()).toSorted(), PODS);
  });

  it("are read for 8 budgets at a time for at most 5 s: the rest follow in the next ticks", async () => {
    await deployStore();
    for (let i = 0; i < 20; i++) writeBudget(stage, { ...DELAYED, selector: { matchLabels: { app: `store-${i}` } } }, `store-${i}`);
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
    const { tick } = startTicks();
    assert.deepEqual((await tick()).filter((call) => call === LIST).length, 1 + 8);
    assert.deepEqual((await tick()).filter((call) => call === LIST).length, 1 + 12);
    assert.deepEqual([await tick(), most], [[LIST], 8]);
  });

  it("are no longer checked once the budget has no delay", async () => {
    await deployStore();
    writeBudget(stage, { ...STORE, crossZoneEvictionDelay: undefined }, "store");
    const { tick } = startTicks();
    assert.deepEqual(await tick(), [LIST, BUDGET_LIST]);
    assert.deepEqual(readyTimes(), {});
  });

  it("that cannot be read or written do not hold the groups", async () => {
    await deployStore();
    writeBudget(stage, STORE, "store");
    stage.emulator.faults.inject({ effect: { kind: "error" }, resource: "pods", verb: "patch" });
    const { tick, lines } = startTicks();
    await tick();
    assert.deepEqual(readyTimes(), {});
    assert.match(lines.join(), /ready time of a pod could not be written/);
    stage.emulator.faults.clear();
    stage.emulator.faults.inject({ effect: { kind: "error" }, resource: "pods", verb: "list" });
    await stage.time.advance(30_000);
    await tick();
    assert.match(lines.join(), /ready times under a disruption budget could not be written/);
    stage.emulator.faults.clear();
    await stage.time.advance(30_000);
    await tick();
    assert.equal(Object.keys(readyTimes()).length, 6);
  });
});

describe("a settled cluster", () => {
  it("costs one list per tick, and one list of budgets per process", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const { tick } = startTicks();
    assert.deepEqual(await tick(), [LIST, BUDGET_LIST]);
    assert.deepEqual(await tick(), [LIST]);
    await tick(true);
    assert.deepEqual(await tick(), [LIST]);
  });

  it("is checked once per process if a budget has a delay", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, DELAYED);
    const { tick } = startTicks();
    await tick();
    assert.equal(Object.keys(readyTimes()).length, 9);
    assert.deepEqual(await tick(), [LIST]);
  });

  it("lists no pods later either: every 30 s only the budgets, and the StatefulSets of budgets with a delay", async () => {
    stage = await setBudgetStage();
    for (const set of stage.emulator.store.list("statefulsets.apps", "default"))
      stage.emulator.store.update("statefulsets.apps", { ...set, metadata: { ...set.metadata, labels: { "rollout-group": "ingester" } } });
    writeBudget(stage, DELAYED);
    const { tick } = startTicks();
    await tick();
    for (let i = 0; i < 3; i++) {
      await stage.time.advance(30_000);
      assert.deepEqual(await tick(), [LIST, BUDGET_LIST, LIST]);
      assert.deepEqual(await tick(), [LIST]);
    }
  });

  it("without the CRD costs no more, and logs that once", async () => {
    stage = await setBudgetStage({ crd: "none" });
    const { tick, lines } = startTicks();
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
    const { tick } = startTicks();
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
