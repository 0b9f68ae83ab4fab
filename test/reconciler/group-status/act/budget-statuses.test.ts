import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createLog } from "../../../../infra/log.ts";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { gatherZones } from "../../../../reconciler/snapshot/gather.ts";
import { listBudgets } from "../../../../reconciler/budget/act/gather-budget.ts";
import { createBudgetStatuses } from "../../../../reconciler/group-status/act/budget-statuses.ts";
import { BUDGETS, setBudgetStage, writeBudget } from "../../budget-stage.ts";
import type { Stage } from "../../stage.ts";

interface Status {
  readonly observedGeneration?: number;
  readonly disruptedPods?: object;
  readonly zones?: readonly { readonly healthy: number; readonly disruptionsAllowed?: number }[];
  readonly conditions?: readonly { readonly status: string; readonly reason: string }[];
}

const HOOKS = "mutatingwebhookconfigurations.admissionregistration.k8s.io";

type Before = (signal?: AbortSignal) => Promise<void>;

/** Each is called, and awaited: before pods are listed, and in place of a probe of the webhook. */
function maintainerOf(stage: Stage, beforePods: Before = async () => {}, probe?: Before) {
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
  const log = createLog({ level: "error", write: () => {}, now: () => new Date(0) });
  const statuses = createBudgetStatuses({ cluster, clock, log });
  return {
    calls,
    passTime: (ms: number) => void (later += ms),
    async tick(stop = new AbortController().signal) {
      const source = { cluster };
      statuses.note("default", await listBudgets("default", source));
      const { groups } = await gatherZones(["default"], source);
      await statuses.write(groups, { fence: { write: () => ({}) }, stop });
    },
  };
}

const statusOf = (stage: Stage, name = "ingester"): Status => ({
  ...(stage.emulator.store.get(BUDGETS, "default", name)?.["status"] as Status | undefined),
});
const writes = (calls: readonly string[]): number => calls.filter((call) => call.startsWith("PUT")).length;

describe("the status of a disruption budget", () => {
  let stage: Stage;
  before(async () => void (stage = await setBudgetStage()));
  after(() => stage.close());

  it("says what it protects, and is written when that changes, every 30 s at most", async () => {
    writeBudget(stage);
    const { calls, tick } = maintainerOf(stage);
    await tick();
    const { zones, conditions } = statusOf(stage);
    assert.deepEqual(
      zones?.map(({ healthy, disruptionsAllowed }) => [healthy, disruptionsAllowed]),
      [
        [3, 1],
        [3, 1],
        [3, 1],
      ],
    );
    assert.deepEqual(
      conditions?.map(({ status, reason }) => [status, reason]),
      // Nothing is registered that would ask it.
      [["False", "NoWebhook"]],
    );
    await tick();
    await stage.time.advance(30_000);
    await tick();
    assert.equal(writes(calls), 1);
  });

  it("follows another spec at once, and a budget that is new", async () => {
    const { calls, tick } = maintainerOf(stage);
    await tick();
    writeBudget(stage, { maxUnavailable: 0 });
    writeBudget(stage, {}, "second");
    await tick();
    assert.deepEqual(
      statusOf(stage).zones?.map(({ disruptionsAllowed }) => disruptionsAllowed),
      [0, 0, 0],
    );
    assert.equal(statusOf(stage, "second").conditions?.length, 1);
    const before = writes(calls);
    await tick();
    assert.equal(writes(calls), before);
    stage.emulator.store.remove(BUDGETS, "default", "second");
    writeBudget(stage);
    await tick();
  });

  it("keeps reservations, and gives way to one that was made meanwhile", async () => {
    const { store } = stage.emulator;
    const budget = store.get(BUDGETS, "default", "ingester") ?? assert.fail("no budget");
    const disruptedPods = {
      "ingester-zone-a-0": {
        kind: "eviction",
        uid: "u",
        pinned: true,
        by: "x",
        time: new Date(stage.time.now()).toISOString(),
      },
    };
    store.update(BUDGETS, { ...budget, status: { ...(budget["status"] as object), disruptedPods } });
    await maintainerOf(stage).tick();
    const after = statusOf(stage);
    assert.deepEqual(after.disruptedPods, disruptedPods);
    assert.deepEqual(
      after.zones?.map(({ healthy }) => healthy),
      [2, 3, 3],
    );
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
    const { tick, calls } = maintainerOf(stage, undefined, async () => {
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
    await maintainerOf(stage).tick();
  });

  it("says that it selects nothing", async () => {
    writeBudget(stage, { selector: { matchLabels: { "rollout-group": "nobody" } } }, "nothing");
    await maintainerOf(stage).tick();
    assert.deepEqual(
      statusOf(stage, "nothing").conditions?.map(({ status, reason }) => [status, reason]),
      [["False", "SelectsNothing"]],
    );
  });
});

describe("the status of a disruption budget by partition, with a delay", () => {
  const BY_PARTITION = { podNamePartitionRegex: "[a-z-]+-([0-9]+)", crossZoneEvictionDelay: "1s" };
  const SEVERAL = ["a", "b", "c", "d", "e"];
  const allowedBy = (name: string) => statusOf(stage, name).zones?.map(({ disruptionsAllowed }) => disruptionsAllowed);
  let stage: Stage;
  beforeEach(async () => {
    stage = await setBudgetStage();
    await stage.time.advance(10_000);
  });
  afterEach(() => stage.close());

  it("loses its evictions allowed, and nothing else, where its pods cannot be listed", async () => {
    writeBudget(stage, BY_PARTITION);
    let fails = false;
    const { tick } = maintainerOf(stage, async () => {
      if (fails) throw Object.assign(new Error("too slow"), { code: "Timeout" });
    });
    await tick();
    assert.deepEqual(allowedBy("ingester"), [3, 3, 3]);
    const { observedGeneration = 0 } = statusOf(stage);
    fails = true;
    writeBudget(stage, { ...BY_PARTITION, maxUnavailable: 2 });
    await tick();
    assert.deepEqual(allowedBy("ingester"), [undefined, undefined, undefined]);
    assert.equal(statusOf(stage).observedGeneration, observedGeneration + 1);
  });

  it("is written after those without pods, one at a time, and each has its turn where lists are slow", async () => {
    for (const name of SEVERAL) writeBudget(stage, BY_PARTITION, name);
    writeBudget(stage, {}, "z");
    const { tick, passTime } = maintainerOf(stage, async () => {
      assert.deepEqual(allowedBy("z"), [1, 1, 1]);
      assert.equal(++listing, 1);
      await setImmediate();
      passTime(3000);
      listing--;
    });
    let listing = 0;
    const counted = new Set<string>();
    for (let round = 0; round < 20; round++) {
      await tick();
      const now = SEVERAL.filter((name) => allowedBy(name)?.every((count) => count === 3));
      assert.equal(now.length, 2, "two lists fit into the time");
      for (const name of SEVERAL)
        assert.ok(now.includes(name) || allowedBy(name)?.every((count) => count === undefined));
      for (const name of now) counted.add(name);
      await stage.time.advance(30_000);
    }
    assert.deepEqual([...counted].toSorted(), SEVERAL);
  });

  it("does not hold up the end of the session", { timeout: 20_000 }, async () => {
    writeBudget(stage, BY_PARTITION);
    const end = new AbortController();
    const { tick, calls } = maintainerOf(stage, async (signal) => {
      end.abort();
      if (!signal?.aborted) await new Promise(() => {});
      throw Object.assign(new Error("ended"), { code: "Cancelled" });
    });
    await tick(end.signal);
    assert.equal(writes(calls), 0);
  });
});

it("a definition without a status gets no write that fails, and keeps its reservations elsewhere", async () => {
  const stage = await setBudgetStage({ crd: "upstream" });
  writeBudget(stage);
  const { calls, tick } = maintainerOf(stage);
  await tick();
  await tick();
  assert.equal(statusOf(stage).conditions, undefined);
  assert.equal(writes(calls), 1);
  await stage.close();
});
