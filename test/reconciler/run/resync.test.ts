import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { run } from "../../../reconciler/run/run.ts";
import { isResyncDue } from "../../../reconciler/run/tick.ts";
import { deploy, runInputOf, setStage, tickOnce, type Stage } from "../stage.ts";

const PERIOD = 5 * 60_000;
const PODS = "GET core/v1/pods collection";

describe("the moment of a resync", () => {
  it("has come for every group if no tick is known, if the last was a period ago, or if the clock went back", () => {
    for (const [since, now] of [
      [undefined, 1000],
      [0, PERIOD],
      [5000, 4000],
    ] as const)
      assert.ok(isResyncDue("ns/group", since, now));
  });

  it("comes exactly once a period, whatever the ticks", () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(fc.integer({ min: 1, max: 90_000 }), { minLength: 1, size: "max", maxLength: 200 }),
        fc.nat(2 ** 40),
        (key, pauses, start) => {
          let [since, looks] = [start, 0];
          for (const pause of pauses) {
            const now = Math.min(since + pause, start + PERIOD);
            if (now > since && isResyncDue(key, since, now)) looks++;
            since = now;
          }
          if (isResyncDue(key, since, start + PERIOD) && since < start + PERIOD) looks++;
          assert.equal(looks, 1);
        },
      ),
    );
  });

  it("is spread over the period", () => {
    const keys = Array.from({ length: 1000 }, (_, i) => `ns/group-${i}`);
    for (let minute = 0; minute < 5; minute++) {
      const from = 1_000_000_000 + minute * 60_000;
      const count = keys.filter((key) => isResyncDue(key, from, from + 60_000)).length;
      assert.ok(count > 150 && count < 250, `${count} of 1000 in a minute`);
    }
  });
});

describe("a tick that resyncs several groups", () => {
  let stage: Stage;
  before(async () => {
    stage = await setStage();
    for (const name of ["k", "l", "m"]) deploy(stage, "x:1", { group: name, isBound: true });
    await stage.time.advance(2000);
  });
  after(() => stage.close());

  it("lists the pods of each in one call, after the StatefulSets, and writes nothing", async () => {
    const { cluster, calls } = stage.connect();
    const { outcomes } = await tickOnce(stage, cluster, { takeResync: () => true });
    assert.deepEqual(calls, ["GET apps/v1/statefulsets collection", PODS, PODS, PODS]);
    assert.deepEqual(
      outcomes.map(({ state }) => state),
      ["settled", "settled", "settled"],
    );
    const withPods = outcomes.flatMap(({ zones }) => zones.filter((zone) => "pods" in zone));
    assert.deepEqual(withPods, [], "pods are dropped once their group is done");
  });

  it("deletes a pod that the list shows as outdated, though the status of its zone is settled", async () => {
    const { cluster } = stage.connect();
    const removed: string[] = [];
    const outdate = <T>(item: T): T => {
      const { metadata } = item as { metadata: { name: string; labels: object } };
      if (metadata.name !== "l-zone-b-1") return item;
      return { ...item, metadata: { ...metadata, labels: { ...metadata.labels, "controller-revision-hash": "old" } } };
    };
    const outdated: Cluster = {
      ...cluster,
      async *list(resource, query, call) {
        for await (const page of cluster.list(resource, query, call))
          yield resource.plural === "pods" ? { ...page, items: page.items.map(outdate) } : page;
      },
      remove: async (_, { name }) => void removed.push(name),
    };
    await tickOnce(stage, outdated, { takeResync: () => true });
    assert.deepEqual(removed, ["l-zone-b-1"]);
  });
});

describe("runs that follow each other", () => {
  const GROUPS = Array.from({ length: 12 }, (_, i) => `group-${i}`);
  let stage: Stage;
  before(async () => {
    stage = await setStage();
    for (const group of GROUPS) deploy(stage, "x:1", { group, zones: ["a"], replicas: 1 });
    await stage.time.advance(2000);
  });
  after(() => stage.close());

  /** A run of 55 s, or a single tick; resolves with the groups whose pods it has read. */
  async function play(identity: string, once: boolean): Promise<string[]> {
    const { cluster } = stage.connect();
    const looks: string[] = [];
    const looking: Cluster = {
      ...cluster,
      async *list(resource, query, call) {
        const group = (query.labelSelector ?? "").replace(/^name=(.*)-zone-a$/, "$1");
        if (resource.plural === "pods" && GROUPS.includes(group)) looks.push(group);
        yield* cluster.list(resource, query, call);
      },
    };
    let isOver = false;
    const from = stage.time.now();
    const running = run({ ...runInputOf(stage, looking, identity), once }).finally(() => (isOver = true));
    while (!isOver) await stage.time.advance(100);
    await running;
    await stage.time.advance(from + 60_000 - stage.time.now());
    return looks;
  }

  const PLAYS = [
    ["across runs at rest", { once: false }],
    ["with a tick a minute", { once: true }],
    ["while another group waits, so that ticks go on", { once: false, waits: true }],
  ] as const;
  for (const [name, { once, ...more }] of PLAYS)
    it(`read each group whole once in 5 minutes, ${name}, and all at the first`, async () => {
      const { store } = stage.emulator;
      if ("waits" in more) {
        const paused = { group: "waits", zones: ["a"], annotations: { "grafana.com/rollout-paused": "true" } };
        deploy(stage, "x:1", paused);
        await stage.time.advance(2000);
        deploy(stage, "x:2", paused);
      }
      if (store.get("leases.coordination.k8s.io", "default", "zonewise-reconciler"))
        store.remove("leases.coordination.k8s.io", "default", "zonewise-reconciler");
      assert.deepEqual([...new Set(await play("first", once))].toSorted(), GROUPS.toSorted());
      const looks: string[] = [];
      for (let minute = 0; minute < 5; minute++) looks.push(...(await play(`run-${minute}`, once)));
      assert.deepEqual([...new Set(looks)].toSorted(), GROUPS.toSorted());
      assert.equal(looks.length, GROUPS.length, looks.join(" "));
    });
});
