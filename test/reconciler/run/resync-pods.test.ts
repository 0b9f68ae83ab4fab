/** Groups that are resynced share lists, in portions; and a group acts on no pods but those that it listed itself. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Cluster, Query } from "../../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import type { Source } from "../../../infra/kubernetes/actor.ts";
import { createResyncs } from "../../../reconciler/run/resync-pods.ts";
import { group } from "../builders.ts";
import { deploy, setStage, tickOnce, type Stage } from "../stage.ts";

const PODS = "GET core/v1/pods collection";
const GROUPS = ["k", "l", "m"];

describe("a tick that resyncs several groups", () => {
  let stage: Stage;
  before(async () => {
    stage = await setStage();
    for (const name of GROUPS) deploy(stage, "x:1", { group: name });
    await stage.time.advance(2000);
  });
  after(() => stage.close());

  /** The list that all of the groups share selects nine zones, and that of a group three. */
  const isShared = ({ labelSelector = "" }: Query): boolean => labelSelector.split(",").length > 3;
  const podLists = (calls: readonly string[]): number => calls.filter((call) => call === PODS).length;

  /** The same item; a pod is of an earlier revision. */
  const outdate = <T>(item: T): T => {
    const { metadata } = item as { metadata: { name: string; labels: object } };
    if (metadata.name !== "l-zone-b-1") return item;
    return { ...item, metadata: { ...metadata, labels: { ...metadata.labels, "controller-revision-hash": "old" } } };
  };

  it("lists the pods of all of them at once, after the StatefulSets", async () => {
    const { cluster, calls } = stage.connect();
    const { outcomes } = await tickOnce(stage, cluster, { isResyncDue: () => true });
    assert.deepEqual(calls, ["GET apps/v1/statefulsets collection", PODS]);
    assert.deepEqual(
      outcomes.map(({ state }) => state),
      ["settled", "settled", "settled"],
    );
  });

  it("reads each by itself if their list fails", async () => {
    const { cluster, calls } = stage.connect();
    let failed = 0;
    const failing: Cluster = {
      ...cluster,
      list(resource, query, call) {
        if (!isShared(query)) return cluster.list(resource, query, call);
        failed++;
        throw new RolloutError("Timeout", "no");
      },
    };
    const { outcomes } = await tickOnce(stage, failing, { isResyncDue: () => true });
    assert.deepEqual(
      outcomes.map(({ state }) => state),
      ["settled", "settled", "settled"],
    );
    assert.deepEqual([failed, podLists(calls)], [1, 3]);
  });

  it("reads a group that is to be changed again, by itself", async () => {
    const { cluster, calls } = stage.connect();
    const removed: string[] = [];
    /** The list that they share shows a pod of another revision, as before an update that the next list shows. */
    const lagging: Cluster = {
      ...cluster,
      async *list(resource, query, call) {
        for await (const page of cluster.list(resource, query, call))
          yield isShared(query) ? { ...page, items: page.items.map(outdate) } : page;
      },
      remove: async (_, { name }) => (removed.push(name), ""),
    };
    const { outcomes } = await tickOnce(stage, lagging, { isResyncDue: () => true });
    assert.deepEqual(removed, []);
    assert.deepEqual(
      outcomes.map(({ state }) => state),
      ["settled", "settled", "settled"],
    );
    assert.equal(podLists(calls), 2);
  });

  it("deletes a pod that its own list shows as outdated, though its status is settled", async () => {
    const { cluster } = stage.connect();
    const removed: string[] = [];
    const outdated: Cluster = {
      ...cluster,
      async *list(resource, query, call) {
        for await (const page of cluster.list(resource, query, call))
          yield resource.plural === "pods" ? { ...page, items: page.items.map(outdate) } : page;
      },
      remove: async (_, { name }) => (removed.push(name), ""),
    };
    await tickOnce(stage, outdated, { isResyncDue: () => true });
    assert.deepEqual(removed, ["l-zone-b-1"]);
  });
});

describe("the groups that a tick resyncs", () => {
  const NO_CLUSTER = {} as Source;
  const queueOf = (count: number, replicas: number, namespace = "ns") => {
    const { zones } = group({ name: "zone-a", replicas });
    return Array.from({ length: count }, (_, i) => ({ key: `${namespace}/g${i}`, group: zones }));
  };

  it("have 2,000 pods, or a twelfth of all at a tick each 5 s", () => {
    for (const [groups, sinceLastMs, expected] of [
      [50, 0, 20],
      [50, 5000, 20],
      [1000, 5000, 83],
      [1000, 60_000, 1000],
      [50, undefined, 50],
    ] as const) {
      const queue = queueOf(groups, 100);
      const resyncs = createResyncs(queue, { isDue: () => true, sinceLastMs }, NO_CLUSTER);
      assert.equal(queue.filter(({ key }) => resyncs.begin(key)).length, expected, `${groups} ${sinceLastMs}`);
    }
  });

  it("are one at least, however many pods it has", () => {
    const queue = queueOf(3, 3000);
    const resyncs = createResyncs(queue, { isDue: () => true, sinceLastMs: 0 }, NO_CLUSTER);
    assert.deepEqual(
      queue.map(({ key }) => resyncs.begin(key) !== undefined),
      [true, false, false],
    );
  });

  it("leave room for others where those of a namespace cannot be begun", () => {
    const queue = [...queueOf(100, 100, "stuck"), ...queueOf(20, 100, "other")];
    const resyncs = createResyncs(queue, { isDue: () => true, sinceLastMs: 0 }, NO_CLUSTER);
    assert.ok(queue.slice(100).every(({ key }) => resyncs.begin(key)));
  });

  it("are all reached once each by ticks that follow each other, whatever is begun first", () => {
    const queue = queueOf(300, 100);
    const done = new Set<string>();
    let ticks = 0;
    for (; done.size < queue.length && ticks < 100; ticks++) {
      const resyncs = createResyncs(
        queue,
        { isDue: (key) => !done.has(key), sinceLastMs: ticks === 0 ? 0 : 5000 },
        NO_CLUSTER,
      );
      for (const { key } of queue.filter(({ key }) => resyncs.begin(key))) done.add(key);
    }
    assert.ok(ticks <= 13, `${ticks} ticks`);
  });

  it("are those that are due alone", () => {
    const queue = queueOf(4, 100);
    const resyncs = createResyncs(queue, { isDue: (key) => key.endsWith("2"), sinceLastMs: 0 }, NO_CLUSTER);
    assert.deepEqual(
      queue.map(({ key }) => resyncs.begin(key) !== undefined),
      [false, false, true, false],
    );
  });
});
