import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { createLog } from "../../../../infra/log.ts";
import { createMetrics } from "../../../../infra/metrics/metrics.ts";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { fieldsOf } from "../../../emulator/objects.ts";
import type { KubeObject } from "../../../emulator/store.ts";
import { gatherZones } from "../../../../reconciler/snapshot/gather.ts";
import { createBudgetKeeper } from "../../../../reconciler/budget/act/keep-budgets.ts";
import type { Draft } from "../../../../reconciler/report/events.ts";
import { BUDGETS, reserved, setBudgetStage, writeBudget } from "../../budget-stage.ts";
import type { Stage } from "../../stage.ts";

interface Status {
  readonly observedGeneration?: number;
  readonly disruptedPods?: object;
  readonly zones?: readonly { readonly name: string; readonly healthy: number; readonly orphaned?: boolean }[];
  readonly conditions?: readonly { readonly status: string; readonly reason: string }[];
}

const HOOKS = "mutatingwebhookconfigurations.admissionregistration.k8s.io";

type Before = (signal?: AbortSignal) => Promise<void>;

/** Each is called, and awaited: before pods are listed, and in place of a probe of the webhook. */
function keeperOf(stage: Stage, beforePods: Before = async () => {}, probe?: Before) {
  const { cluster: direct, calls } = stage.connect();
  const cluster: Cluster = {
    ...direct,
    async *list(resource, query, call) {
      if (resource.plural === "pods") await beforePods(call?.signal);
      yield* direct.list(resource, query, call);
    },
    async create(resource, request, call) {
      if (probe && request.subresource === "eviction") await probe(call?.signal);
      return await direct.create(resource, request, call);
    },
  };
  let later = 0;
  const clock = { ...stage.clock, monotonic: () => stage.clock.monotonic() + later };
  const lines: string[] = [];
  const drafts: Draft[] = [];
  const log = createLog({ level: "info", write: (line) => void lines.push(line), now: () => new Date(0) });
  const metrics = createMetrics();
  const noteKind = (isFound: boolean) => log.info(`budgets are ${isFound ? "on" : "off"}`);
  const emitEvents = (some: readonly Draft[]) => void drafts.push(...some);
  const keep = createBudgetKeeper({ cluster, clock, log, metrics: metrics.budgets, emitEvents, noteKind });
  const tick = async (stop = new AbortController().signal): Promise<void> => {
    const { groups } = await gatherZones(["default"], { cluster: direct });
    calls.length = 0;
    await keep(["default"], groups, { fence: { write: () => ({}) }, stop });
  };
  const passTime = (ms: number): void => void (later += ms);
  return {
    calls,
    lines,
    drafts,
    metrics,
    tick,
    passTime,
    tickLater: async (): Promise<void> => (passTime(30_000), await tick()),
  };
}

const statusOf = (stage: Stage, name = "ingester"): Status => ({
  ...(stage.emulator.store.get(BUDGETS, "default", name)?.["status"] as Status | undefined),
});
const listsOfPods = (calls: readonly string[]): number =>
  calls.filter((call) => call === "GET core/v1/pods collection").length;
const writes = (calls: readonly string[]): number => calls.filter((call) => call.startsWith("PUT")).length;

const SEVERAL = ["a", "b", "c", "d", "e", "f", "g", "h"];

describe("the status of a disruption budget", () => {
  let stage: Stage;
  before(async () => void (stage = await setBudgetStage()));
  after(() => stage.close());

  it("says what it protects, and is written when that changes, every 30 s at most", async () => {
    writeBudget(stage);
    const { calls, tick, tickLater } = keeperOf(stage);
    await tick();
    const { zones, conditions } = statusOf(stage);
    assert.deepEqual(
      zones?.map(({ healthy }) => healthy),
      [3, 3, 3],
    );
    assert.deepEqual(
      conditions?.map(({ status, reason }) => [status, reason]),
      // Nothing is registered that would ask it.
      [["False", "NoWebhook"]],
    );
    await tick();
    assert.deepEqual(calls, []);
    await tickLater();
    assert.deepEqual([writes(calls), calls.length > 0], [0, true]);
  });

  it("follows another spec, and a budget that is new", async () => {
    const { calls, tick, tickLater } = keeperOf(stage);
    await tick();
    const { observedGeneration: generation = 0 } = statusOf(stage);
    writeBudget(stage, { maxUnavailable: 0 });
    writeBudget(stage, {}, "second");
    await tickLater();
    assert.equal(statusOf(stage).observedGeneration, generation + 1);
    assert.equal(statusOf(stage, "second").conditions?.length, 1);
    await tickLater();
    assert.equal(writes(calls), 0);
    stage.emulator.store.remove(BUDGETS, "default", "second");
    writeBudget(stage);
    await tickLater();
  });

  it("keeps reservations until their time is over", async () => {
    const { store } = stage.emulator;
    const at = (seconds: number): string => new Date(stage.time.now() - seconds * 1000).toISOString();
    const disruptedPods = {
      "ingester-zone-a/1": { kind: "downscale", uid: "left", from: 2, pinned: true, time: at(100), by: "reconciler" },
      "ingester-zone-b-0": { kind: "eviction", uid: "young", pinned: true, time: at(100), by: "functions" },
    };
    const budget = store.get(BUDGETS, "default", "ingester") ?? assert.fail("no budget");
    store.update(BUDGETS, { ...budget, status: { ...(budget["status"] as object), disruptedPods } });
    const { calls, tick, tickLater } = keeperOf(stage);
    await tick();
    assert.deepEqual([Object.keys(reserved(stage)), writes(calls)], [["ingester-zone-b-0"], 1]);
    await stage.time.advance(30_000);
    await tickLater();
    assert.deepEqual([reserved(stage), writes(calls)], [{}, 1]);
    await tickLater();
    assert.equal(writes(calls), 0);
  });

  it("gives way to a reservation that is made meanwhile", async () => {
    const { store } = stage.emulator;
    const [time, by] = [new Date(stage.time.now()).toISOString(), "x"];
    const disruptedPods = { "ingester-zone-a-0": { kind: "eviction", uid: "u", pinned: true, by, time } };
    writeBudget(stage, { maxUnavailable: 2 });
    const { tick } = keeperOf(stage, async () => {
      const budget = store.get(BUDGETS, "default", "ingester") ?? assert.fail("no budget");
      store.update(BUDGETS, { ...budget, status: { ...(budget["status"] as object), disruptedPods } });
    });
    await tick();
    assert.deepEqual(reserved(stage), disruptedPods);
    await keeperOf(stage).tick();
    assert.deepEqual(reserved(stage), disruptedPods);
  });

  it("says nothing of a webhook that the end of the session kept from being asked", async () => {
    const { store } = stage.emulator;
    const rules = [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods/eviction"] }];
    const clientConfig = { url: "https://127.0.0.1:1/admission/mutate-pod-eviction" };
    const hook = { name: "x.example.com", admissionReviewVersions: ["v1"], sideEffects: "None", clientConfig, rules };
    const metadata = { name: "evictions" };
    store.create(HOOKS, { apiVersion: "x/v1", kind: "MutatingWebhookConfiguration", metadata, webhooks: [hook] });
    writeBudget(stage, { maxUnavailable: 2 });
    const before = statusOf(stage);
    const [end, asked] = [new AbortController(), new Set<string>()];
    const { tick, calls } = keeperOf(stage, undefined, async () => {
      asked.add("probe");
      end.abort();
      throw Object.assign(new Error("ended"), { code: "Cancelled" });
    });
    await tick(end.signal);
    assert.equal(asked.size, 1);
    assert.equal(writes(calls), 0);
    assert.deepEqual(statusOf(stage), before);
    store.remove(HOOKS, undefined, "evictions");
    writeBudget(stage);
    await keeperOf(stage).tick();
  });

  it("says that it selects nothing", async () => {
    writeBudget(stage, { selector: { matchLabels: { "rollout-group": "nobody" } } }, "nothing");
    await keeperOf(stage).tick();
    assert.deepEqual(
      statusOf(stage, "nothing").conditions?.map(({ status, reason }) => [status, reason]),
      [["False", "SelectsNothing"]],
    );
  });
});

/** The same StatefulSet, created again without pods, and for pods with another label. */
function emptied({ metadata: { name, namespace = "", labels = {} }, ...set }: KubeObject) {
  const { template, ...spec } = fieldsOf(set["spec"]);
  const more = { v: "2" };
  const made = { ...fieldsOf(template), metadata: { labels: { name, ...labels, ...more } } };
  const selector = { matchLabels: { name, ...more } };
  return {
    ...set,
    metadata: { name, namespace, labels },
    spec: { ...spec, replicas: 0, selector, template: made },
    status: {},
  };
}

describe("the status of a disruption budget", () => {
  let stage: Stage;
  beforeEach(async () => void (stage = await setBudgetStage()));
  afterEach(() => stage.close());
  const zonesOf = () =>
    statusOf(stage).zones?.map(({ name, healthy, orphaned }) => `${name} ${healthy}${orphaned ? " orphaned" : ""}`);
  const WHOLE = ["ingester-zone-a 3", "ingester-zone-b 3", "ingester-zone-c 3"];

  it("names a zone whose StatefulSet is gone, as long as its pods are there", async () => {
    const { store } = stage.emulator;
    writeBudget(stage);
    const { calls, tick, tickLater } = keeperOf(stage);
    await tick();
    assert.deepEqual([zonesOf(), listsOfPods(calls)], [WHOLE, 1]);
    const set = store.get("statefulsets.apps", "default", "ingester-zone-b") ?? assert.fail();
    const pods = store.list("pods").filter(({ metadata }) => metadata.ownerReferences?.[0]?.uid === set.metadata.uid);
    store.remove("statefulsets.apps", "default", "ingester-zone-b", { propagationPolicy: "Orphan" });
    await stage.time.advance(1000);
    await tickLater();
    assert.deepEqual(zonesOf(), ["ingester-zone-a 3", "ingester-zone-b 3 orphaned", "ingester-zone-c 3"]);
    await tickLater();
    assert.deepEqual(zonesOf(), ["ingester-zone-a 3", "ingester-zone-b 3 orphaned", "ingester-zone-c 3"]);
    store.create("statefulsets.apps", emptied(set));
    for (let round = 0; round < 2; round++) {
      await tickLater();
      const beside = ["ingester-zone-b 0", "ingester-zone-b 3 orphaned"];
      assert.deepEqual(zonesOf(), ["ingester-zone-a 3", ...beside, "ingester-zone-c 3"]);
    }
    store.remove("statefulsets.apps", "default", "ingester-zone-b");
    for (const { metadata } of pods) store.remove("pods", "default", metadata.name, { gracePeriodSeconds: 0 });
    await tickLater();
    assert.deepEqual(zonesOf(), ["ingester-zone-a 3", "ingester-zone-c 3"]);
    await tickLater();
    assert.equal(listsOfPods(calls), 0, "no pods are listed where all is whole");
  });

  it("names an orphaned zone that was there before the budget", async () => {
    stage.emulator.store.remove("statefulsets.apps", "default", "ingester-zone-b", { propagationPolicy: "Orphan" });
    await stage.time.advance(1000);
    writeBudget(stage);
    await keeperOf(stage).tick();
    assert.deepEqual(zonesOf(), ["ingester-zone-a 3", "ingester-zone-b 3 orphaned", "ingester-zone-c 3"]);
  });

  it("has its turn where lists are slow", async () => {
    for (const name of SEVERAL) writeBudget(stage, {}, name);
    // Each list of pods takes longer than a round may begin further ones.
    const { tickLater, passTime } = keeperOf(stage, async () => passTime(6000));
    const written = new Set<string>();
    for (let round = 0; round < 20; round++) {
      for (const name of SEVERAL) writeBudget(stage, { maxUnavailable: round + 2 }, name);
      await tickLater();
      for (const name of SEVERAL) if (statusOf(stage, name).observedGeneration === round + 2) written.add(name);
      await stage.time.advance(30_000);
    }
    assert.deepEqual([...written].toSorted(), SEVERAL);
  });

  it("does not hold up the end of the session", { timeout: 20_000 }, async () => {
    writeBudget(stage);
    const end = new AbortController();
    const { tick, calls } = keeperOf(stage, async (signal) => {
      end.abort();
      if (!signal?.aborted) await new Promise(() => {});
      throw Object.assign(new Error("ended"), { code: "Cancelled" });
    });
    await tick(end.signal);
    assert.equal(writes(calls), 0);
  });
});

describe("the keeper of budgets", () => {
  let stage: Stage;
  afterEach(() => stage.close());

  it("counts invalid ones each time, as alerts use the rate, logs them once a spec, and records Events", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    writeBudget(stage, { maxUnavailable: -1 }, "invalid");
    const { tick, tickLater, metrics, lines, drafts } = keeperOf(stage);
    await tick();
    await tickLater();
    const counts = [...(await metrics.render()).matchAll(/configurations_observed_total\{result="(\w+)"\} (\d+)/g)];
    assert.deepEqual(Object.fromEntries(counts.map(([, result, count]) => [result, Number(count)])), {
      updated: 1,
      ignored: 1,
      invalid: 2,
    });
    assert.equal(lines.filter((line) => /max unavailable must be 0 <= val, got -1/.test(line)).length, 1);
    assert.deepEqual(
      drafts.map(({ regarding, reason, type }) => [regarding.name, reason, type]),
      Array.from({ length: 2 }, () => ["invalid", "BudgetInvalid", "Warning"]),
    );
  });

  it("asks again for a definition that is not installed", async () => {
    stage = await setBudgetStage({ crd: "none" });
    const { tick, lines } = keeperOf(stage);
    await tick();
    assert.match(lines.join(), /budgets are off/);
  });

  it("writes nothing that fails to a definition without a status, and lists no pods again", async () => {
    stage = await setBudgetStage({ crd: "upstream" });
    writeBudget(stage);
    const { calls, tick, tickLater } = keeperOf(stage);
    await tick();
    assert.equal(statusOf(stage).conditions, undefined);
    assert.equal(writes(calls), 1);
    await tickLater();
    assert.equal(listsOfPods(calls), 0);
  });
});
