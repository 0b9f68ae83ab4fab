import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { createLog } from "../../../../infra/log.ts";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { fieldsOf } from "../../../emulator/objects.ts";
import type { KubeObject } from "../../../emulator/store.ts";
import { gatherZones } from "../../../../reconciler/snapshot/gather.ts";
import { listBudgets } from "../../../../reconciler/budget/act/gather-budget.ts";
import { createBudgetStatuses } from "../../../../reconciler/budget/act/budget-statuses.ts";
import { BUDGETS, setBudgetStage, writeBudget } from "../../budget-stage.ts";
import type { Stage } from "../../stage.ts";
import { amend } from "../../../builders.ts";

interface Status {
  readonly observedGeneration?: number;
  readonly disruptedPods?: object;
  readonly zones?: readonly { readonly name: string; readonly healthy: number; readonly orphaned?: boolean }[];
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
      zones?.map(({ healthy }) => healthy),
      [3, 3, 3],
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
    const { observedGeneration: generation = 0 } = statusOf(stage);
    writeBudget(stage, { maxUnavailable: 0 });
    writeBudget(stage, {}, "second");
    await tick();
    assert.equal(statusOf(stage).observedGeneration, generation + 1);
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
    const time = new Date(stage.time.now()).toISOString();
    const disruptedPods = { "ingester-zone-a-0": { kind: "eviction", uid: "u", pinned: true, by: "x", time } };
    amend(store, "ZoneAwarePodDisruptionBudget", "ingester", { status: { disruptedPods } });
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

const SEVERAL = ["a", "b", "c", "d", "e", "f", "g", "h"];

describe("the status of a disruption budget", () => {
  let stage: Stage;
  beforeEach(async () => void (stage = await setBudgetStage()));
  afterEach(() => stage.close());
  const zonesOf = () =>
    statusOf(stage).zones?.map(({ name, healthy, orphaned }) => `${name} ${healthy}${orphaned ? " orphaned" : ""}`);
  const WHOLE = ["ingester-zone-a 3", "ingester-zone-b 3", "ingester-zone-c 3"];
  const listsOfPods = (calls: readonly string[]): number => calls.filter((call) => /^GET .*\/pods\?/.test(call)).length;

  it("names a zone whose StatefulSet is gone, as long as its pods are there", async () => {
    const { store } = stage.emulator;
    writeBudget(stage);
    const { calls, tick, passTime } = maintainerOf(stage);
    const tickLater = async (): Promise<void> => (passTime(30_000), await tick());
    await tick();
    assert.deepEqual(zonesOf(), WHOLE);
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
    const before = listsOfPods(calls);
    await tickLater();
    assert.equal(listsOfPods(calls), before, "no pods are listed where all is whole");
  });

  it("names an orphaned zone that was there before the budget", async () => {
    stage.emulator.store.remove("statefulsets.apps", "default", "ingester-zone-b", { propagationPolicy: "Orphan" });
    await stage.time.advance(1000);
    writeBudget(stage);
    await maintainerOf(stage).tick();
    assert.deepEqual(zonesOf(), ["ingester-zone-a 3", "ingester-zone-b 3 orphaned", "ingester-zone-c 3"]);
  });

  it("has its turn where lists are slow", async () => {
    for (const name of SEVERAL) writeBudget(stage, {}, name);
    // Each list of pods takes longer than a round may begin further ones.
    const { tick, passTime } = maintainerOf(stage, async () => passTime(6000));
    const written = new Set<string>();
    for (let round = 0; round < 20; round++) {
      for (const name of SEVERAL) writeBudget(stage, { maxUnavailable: round + 2 }, name);
      await tick();
      for (const name of SEVERAL) if (statusOf(stage, name).observedGeneration === round + 2) written.add(name);
      await stage.time.advance(30_000);
    }
    assert.deepEqual([...written].toSorted(), SEVERAL);
  });

  it("does not hold up the end of the session", { timeout: 20_000 }, async () => {
    writeBudget(stage);
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
