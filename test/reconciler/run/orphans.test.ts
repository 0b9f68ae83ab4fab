/**
 * A StatefulSet is deleted without its pods in the middle of its rollout (§1.15), from the tick and the eviction webhook
 * to the pods.
 */
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { PodObject, StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { type Pod, readPod } from "../../../reconciler/model/pod.ts";
import { gatherWorld } from "../../../reconciler/plan/act/gather-world.ts";
import { planGroup } from "../../../reconciler/plan/plan-group.ts";
import { findOrphans } from "../../../reconciler/snapshot/gather.ts";
import type { Labels, LabelSelector } from "../../../reconciler/model/label-selector.ts";
import type { KubeObject } from "../../emulator/store.ts";
import { callWebhook } from "../../functions/eviction/eviction-stage.ts";
import { zone } from "../../builders/groups.ts";
import { amend } from "../../builders/objects.ts";
import { setBudgetStage, writeBudget } from "../budget-stage.ts";
import { deploy, setReady, setStage, type Stage, tickOnce } from "../stage.ts";

const SETS = "statefulsets.apps";
const [B, C] = ["ingester-zone-b", "ingester-zone-c"];
const LABELLED = { podLabels: { "rollout-group": "ingester" } };

let stage: Stage;
afterEach(() => stage.close());

const podsOf = (zone: string) =>
  stage.emulator.store.list("pods", "default").filter(({ metadata }) => metadata.name.startsWith(zone));
const uids = (zone: string): string[] => podsOf(zone).map(({ metadata }) => metadata.uid);
const spec = (set: string, stored = stage.emulator.store.get(SETS, "default", set)): object =>
  stored?.["spec"] as object;

async function evict(name: string): Promise<string> {
  const { answer } = await callWebhook(stage, { name });
  return `${answer.allowed ? 200 : answer.code} ${answer.message ?? ""}`.trim();
}

/** What came of each group. */
async function tickAll(): Promise<string[]> {
  const { outcomes } = await tickOnce(stage, stage.connect().cluster);
  await stage.time.advance(1000);
  return outcomes.map((outcome) => {
    if (outcome.state === "held") return `${outcome.hold.reason} ${outcome.hold.message}`;
    return outcome.state === "acted" ? outcome.decision.message : outcome.state;
  });
}

const tick = async (): Promise<string> => (await tickAll())[0] ?? "none";

type Unstored = Readonly<Record<string, unknown>> & {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string; readonly labels: Labels };
  readonly spec: object;
};

const OTHER: LabelSelector = { matchLabels: { name: B, v: "2" } };

/** It selects no pod that the former one has left. */
function withOtherSelector(set: Unstored, change: object, selector = OTHER): Unstored {
  const { template } = set.spec as { readonly template: { readonly metadata: { readonly labels: Labels } } };
  const labels = { ...template.metadata.labels, v: "2" };
  const made = { ...template, metadata: { ...template.metadata, labels } };
  return { ...set, spec: { ...set.spec, selector, template: made, ...change } };
}

/** Zone b has lost its first pod to a new image, and then its StatefulSet; zones a and c are as before. */
async function orphanAmid({ labelled = true, ready = false } = {}): Promise<
  (change?: (set: Unstored) => Unstored) => Promise<void>
> {
  stage = await setBudgetStage();
  if (!labelled) {
    await stage.close();
    stage = await setStage();
    deploy(stage, "x:1");
    await stage.time.advance(2000);
  }
  const labels = labelled ? LABELLED : {};
  deploy(stage, "x:2", { zones: ["b", "c"], ...labels });
  await stage.time.advance(500);
  assert.match(await tick(), /^updating ingester-zone-b-0/);
  await stage.time.advance(3000);
  setReady(stage, `${B}-0`, ready);
  await stage.time.advance(1000);
  const set = stage.emulator.store.get(SETS, "default", B);
  assert.ok(set);
  const { name, labels: own } = set.metadata;
  const again = { ...set, metadata: { name, namespace: "default", labels: own ?? {} }, spec: spec(B), status: {} };
  stage.emulator.store.remove(SETS, "default", B, { propagationPolicy: "Orphan" });
  await stage.time.advance(1000);
  assert.equal(stage.emulator.store.get(SETS, "default", B), undefined);
  assert.equal(podsOf(B).length, 3);
  return async (change = (set) => set) => {
    stage.emulator.store.create(SETS, change(again));
    await stage.time.advance(1000);
  };
}

describe("a zone that is deleted without its pods in the middle of its rollout", () => {
  it("keeps the pods of others while one of its own is not ready, and loses none by us", async () => {
    const recreate = await orphanAmid();
    const before = [...uids(B), ...uids(C)];
    for (let i = 0; i < 3; i++)
      assert.match(
        await tick(),
        /^ZoneOrphaned ingester-zone-b-0: not ready; StatefulSet ingester-zone-b is gone.*; ingester-zone-c waits$/,
      );
    assert.deepEqual([...uids(B), ...uids(C)], before);
    await recreate();
    setReady(stage, `${B}-0`, true);
    await stage.time.advance(2000);
    assert.match(await tick(), /^updating ingester-zone-b-1/, "it is adopted, and goes on");
  });

  it("ends a batch of another zone once one of its own is not ready any more", async () => {
    await orphanAmid({ ready: true });
    amend(stage.emulator.store, "StatefulSet", C, { annotations: { "rollout-max-unavailable": "100%" } });
    await stage.time.advance(1000);
    const { cluster } = stage.connect();
    const taken: string[] = [];
    const remove: Cluster["remove"] = async (resource, target, call) => {
      const version = await cluster.remove(resource, target, call);
      taken.push(target.name);
      setReady(stage, `${B}-1`, false);
      await stage.time.advance(1000);
      return version;
    };
    await tickOnce(stage, { ...cluster, remove });
    assert.deepEqual(taken, [`${C}-0`]);
  });

  it("costs a settled group no list of pods", async () => {
    await orphanAmid();
    deploy(stage, "x:1", { zones: ["c"], ...LABELLED });
    await stage.time.advance(1000);
    const { cluster, calls } = stage.connect();
    const { outcomes } = await tickOnce(stage, cluster);
    assert.equal(outcomes[0]?.state, "settled");
    assert.deepEqual(
      calls.filter((call) => /pods/.test(call)),
      [],
    );
  });
});

describe("a zone that is created again without the pods that it has left behind", () => {
  for (const [name, change] of [
    ["with 0 replicas", { replicas: 0 }],
    ["with other ordinals", { replicas: 1, ordinals: { start: 7 } }],
  ] as const)
    it(`keeps the pods of others while one of them is not ready: ${name}`, async () => {
      const recreate = await orphanAmid();
      await recreate((set) => withOtherSelector(set, change));
      await stage.time.advance(3000);
      const before = uids(C);
      for (let i = 0; i < 3; i++) await tick();
      assert.match(
        await tick(),
        /^ZoneOrphaned .*ingester-zone-b-0: not ready; StatefulSet ingester-zone-b was created/,
      );
      assert.deepEqual(uids(C), before);
      writeBudget(stage);
      assert.match(await evict(`${C}-1`), /^429 1 pod not ready in ingester-zone-b/);
      assert.match(await evict(`${C}-0`), /^429 1 pod not ready in ingester-zone-b/, "by the cached denial");
      assert.match(await evict(`${B}-1`), /^429 1 pod not ready in ingester-zone-b/);
      assert.match(await evict(`${B}-0`), /^200/);
      for (const pod of podsOf(B))
        if (!pod.metadata.name.endsWith("-7")) stage.emulator.store.remove("pods", "default", pod.metadata.name);
      await stage.time.advance(60_000);
      assert.match(await tick(), /^updating ingester-zone-c-0/);
    });
});

describe("a StatefulSet that was created again with another selector", () => {
  for (const [how, selector] of [
    ["labels", OTHER],
    ["an expression", { matchLabels: { name: B }, matchExpressions: [{ key: "v", operator: "Exists" }] }],
  ] as const)
    it(`has the pods named that hold its names, and is never done in a plan: by ${how}`, async () => {
      const recreate = await orphanAmid({ ready: true });
      await recreate((set) => withOtherSelector(set, {}, selector));
      await stage.time.advance(60_000);
      const names = [0, 1, 2].map((ordinal) => `${B}-${ordinal}`);
      const held = new RegExp(`^ZoneOrphaned 3 pods of ${B} missing: ${names.join(", ")} are left behind by`);
      assert.match(await tick(), held);
      const { cluster } = stage.connect();
      const group = { namespace: "default", group: "ingester" };
      const plan = async () => {
        const world = await gatherWorld(group, { cluster, clock: stage.clock }, async () => "tracker");
        const { end, holds } = planGroup(world, 99);
        return [end, holds.map(({ reason }) => reason)];
      };
      assert.deepEqual(await plan(), ["blocked", ["ZoneOrphaned"]]);
      stage.emulator.store.remove("pods", "default", names.shift() ?? "");
      await stage.time.advance(60_000);
      setReady(stage, `${B}-0`, false);
      await stage.time.advance(1000);
      assert.deepEqual(await plan(), ["blocked", ["ZoneOrphaned"]], "one pod of its own is about to be ready");
      for (const name of names) stage.emulator.store.remove("pods", "default", name);
      await stage.time.advance(60_000);
      assert.doesNotMatch(await tick(), /^ZoneOrphaned/);
    });
});

describe("a zone whose StatefulSet loses its label in the middle of its rollout", () => {
  it("keeps the pods of others while one of its own is not ready", async () => {
    const recreate = await orphanAmid();
    await recreate();
    amend(stage.emulator.store, "StatefulSet", B, { metadata: { labels: {} } });
    await stage.time.advance(1000);
    const before = uids(C);
    assert.match(
      await tick(),
      /^ZoneOrphaned .*ingester-zone-b-0: not ready; StatefulSet ingester-zone-b is not in the group/,
    );
    assert.deepEqual(uids(C), before);
    writeBudget(stage);
    assert.match(await evict(`${C}-0`), /^429 1 pod not ready in ingester-zone-b/);
    stage.emulator.store.remove("zoneawarepoddisruptionbudgets.rollout-operator.grafana.com", "default", "ingester");
    setReady(stage, `${B}-0`, true);
    await stage.time.advance(2000);
    assert.match(await tick(), /^updating ingester-zone-c-0/);
  });
});

describe("a group that is renamed in the middle of its rollout", () => {
  for (const [title, renamed, template] of [
    ["with the label of its template, before its pods are replaced", "ingester-zone-a", true],
    ["alone", C, false],
  ] as const)
    it(`keeps the pods of a StatefulSet that has the new label ${title}, while a pod of the former group is not ready`, async () => {
      const recreate = await orphanAmid({ ready: true });
      await recreate();
      const { store } = stage.emulator;
      const set = store.get(SETS, "default", renamed) as KubeObject & StatefulSet;
      const labels = { ...set.metadata.labels, "rollout-group": "new" };
      const own = { ...set.spec?.template?.metadata?.labels, ...(template && { "rollout-group": "new" }) };
      const made = { ...set.spec?.template, metadata: { labels: own } };
      const metadata = { ...set.metadata, labels };
      store.update(SETS, { ...set, metadata, spec: { ...set.spec, template: made } });
      setReady(stage, `${B}-0`, false);
      await stage.time.advance(1000);
      const before = uids(renamed);
      const culprit = `ZoneOrphaned ${B}-0: not ready; StatefulSet ${B} is of group ingester, which`;
      const isHeld = (line: string): boolean => line.startsWith(culprit) && line.endsWith(`; ${renamed} waits`);
      for (let i = 0; i < 3; i++) assert.ok((await tickAll()).some(isHeld));
      assert.deepEqual(uids(renamed), before);
      setReady(stage, `${B}-0`, true);
      await stage.time.advance(2000);
      assert.ok((await tickAll()).some((line) => line.startsWith(`updating ${renamed}-0`)));
    });
});

describe("StatefulSets outside of a group whose pods have its label", () => {
  it("are read with one list", async () => {
    stage = await setStage();
    const { store } = stage.emulator;
    const group = [zone({ name: "ingester-zone-a" })];
    deploy(stage, "x:1", { podLabels: { "rollout-group": "ingester" } });
    await stage.time.advance(2000);
    const set = store.get(SETS, "default", B);
    assert.ok(set);
    for (let i = 0; i < 9; i++) {
      const labels = { name: `store-${i}` };
      const own = { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: {} } };
      const metadata = { name: `store-${i}`, namespace: "default" };
      store.create(SETS, { ...set, metadata, spec: { ...spec(B), ...own }, status: {} });
    }
    await stage.time.advance(3000);
    const strangers = (store.list("pods", "default") as unknown as PodObject[]).map(readPod);
    const ofStores = strangers.filter(({ name }) => name.startsWith("store-"));
    assert.equal(ofStores.length, 9);
    const read = async (some: readonly Pod[]) => {
      const { cluster, calls } = stage.connect();
      const found = await findOrphans(some, group, { cluster });
      assert.ok(found.every(({ orphaned, replicas }) => orphaned === "outside" && replicas === 1));
      return { found: found.length, calls: calls.length };
    };
    assert.deepEqual(await read(ofStores.slice(1)), { found: 8, calls: 1 });
    assert.deepEqual(await read(ofStores), { found: 9, calls: 1 });
  });
});
