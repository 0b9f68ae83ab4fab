import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { deploy, setStage, tickOnce, type Stage } from "../stage.ts";
import { revisions, witness } from "../witness.ts";
import { amend } from "../../builders/objects.ts";

const NAMES = ["a", "b", "c"].flatMap((zone) => [0, 1, 2].map((i) => `ingester-zone-${zone}-${i}`));

describe("a tick, again and again", () => {
  let stage: Stage;
  before(async () => {
    stage = await setStage();
    deploy(stage, "x:1", { isBound: true });
    await stage.time.advance(2000);
  });
  after(() => stage.close());

  it("rolls zone after zone, pod after pod, and records each zone as current", async () => {
    const seen = witness(stage);
    const { cluster } = stage.connect();
    deploy(stage, "x:2", { isBound: true });
    for (let i = 0; i < 200; i++) {
      await stage.time.advance(100);
      const { outcomes } = await tickOnce(stage, cluster);
      if (outcomes.every((outcome) => outcome.state === "settled") && seen.deleted.length === 9) break;
    }
    assert.deepEqual(seen, { deleted: NAMES, violations: [] });
    assert.deepEqual(
      revisions(stage),
      [0, 1, 2].map(() => [true, 3, 3]),
    );
  });

  it("begins the next zone in the step that finishes one, by the same lists", async () => {
    const { cluster, calls } = stage.connect();
    deploy(stage, "x:1", { isBound: true });
    const ticks: { done: string[]; calls: string[]; settled: boolean }[] = [];
    do {
      await stage.time.advance(100);
      const done: string[] = [];
      calls.length = 0;
      const { outcomes } = await tickOnce(stage, cluster, {
        onOutcome: (outcome) => {
          if (outcome.state === "acted") done.push(`${outcome.decision.action} ${outcome.decision.zone.name}`);
          assert.ok(!outcome.zones.some((zone) => "pods" in zone), "pods are dropped");
        },
      });
      const settled = outcomes.every(({ state }) => state === "settled");
      ticks.push({ done, calls: [...calls], settled });
    } while (ticks.length < 200 && !ticks.at(-1)?.settled);
    assert.deepEqual(
      ticks.filter(({ done }) => done.some((text) => text.startsWith("finish"))).map(({ done }) => done),
      [
        ["finishZone ingester-zone-a", "deletePods ingester-zone-b"],
        ["finishZone ingester-zone-b", "deletePods ingester-zone-c"],
        ["finishZone ingester-zone-c"],
      ],
    );
    const calledIn = ticks.find(({ done }) => done.length === 2)?.calls;
    assert.deepEqual(calledIn, [
      "GET apps/v1/statefulsets collection",
      "GET core/v1/pods collection",
      "PATCH apps/v1/statefulsets object status subresource",
      "PATCH apps/v1/statefulsets object status subresource",
      "DELETE core/v1/pods object",
    ]);
  });

  it("costs one list and no write once all groups are settled", async () => {
    const { cluster, calls } = stage.connect();
    const version = stage.emulator.store.list("statefulsets.apps").map((set) => set.metadata.resourceVersion);
    await tickOnce(stage, cluster);
    assert.deepEqual(calls, ["GET apps/v1/statefulsets collection"]);
    assert.deepEqual(
      stage.emulator.store.list("statefulsets.apps").map((set) => set.metadata.resourceVersion),
      version,
    );
  });

  it("pods deleted before an error are reported, and a namespace that cannot be read does not hold the others", async () => {
    deploy(stage, "x:3", { isBound: true });
    for (const { metadata } of stage.emulator.store.list("statefulsets.apps", "default"))
      amend(stage.emulator.store, "StatefulSet", metadata.name, { annotations: { "rollout-max-unavailable": "2" } });
    await stage.time.advance(5000);
    const { cluster } = stage.connect();
    let removed = 0;
    const failing: Cluster = {
      ...cluster,
      remove: (...call) =>
        ++removed === 2 ? Promise.reject(new RolloutError("ServerError", "no")) : cluster.remove(...call),
      list: (resource, query, call) => {
        if (query.namespace === "forbidden") throw new RolloutError("Forbidden", "no");
        return cluster.list(resource, query, call);
      },
    };
    const { outcomes, failures } = await tickOnce(stage, failing, { namespaces: ["forbidden", "default"] });
    const [outcome] = outcomes;
    assert.equal(outcome?.state === "acted" && outcome.effect.replaced.length, 1);
    assert.deepEqual([...failures.keys()], ["forbidden"]);
    await assert.rejects(tickOnce(stage, failing, { namespaces: ["forbidden"] }), /no/);
  });

  it("reports the number of groups that it did not reach", async () => {
    for (const group of ["k", "l", "m"]) deploy(stage, "y:1", { group, zones: ["a"] });
    await stage.time.advance(1000);
    const { cluster } = stage.connect();
    const first = async (seconds: number): Promise<unknown[]> => {
      const stop = new AbortController();
      const entered: string[] = [];
      const { skipped } = await tickOnce(stage, cluster, {
        now: () => seconds * 1000,
        stop: stop.signal,
        takeResync: () => true,
        onOutcome: ({ group }) => void entered.push(group),
      });
      return [entered.length, skipped];
    };
    assert.deepEqual(await first(0), [4, 0]);
    const stop = new AbortController();
    stop.abort();
    assert.equal((await tickOnce(stage, cluster, { stop: stop.signal })).skipped, 4);
    for (const group of ["k", "l", "m"]) stage.emulator.store.remove("statefulsets.apps", "default", `${group}-zone-a`);
  });

  it("does not touch a StatefulSet without the label, and one group's error does not affect others", async () => {
    deploy(stage, "y:1", { group: "broken", zones: ["a"] });
    const spec = { updateStrategy: { type: "RollingUpdate" } };
    amend(stage.emulator.store, "StatefulSet", "broken-zone-a", { spec });
    await stage.time.advance(1000);
    const { cluster } = stage.connect();
    const { outcomes } = await tickOnce(stage, cluster);
    assert.deepEqual(outcomes.map((outcome) => [outcome.group, outcome.state]).toSorted(), [
      ["broken", "held"],
      ["ingester", "acted"],
    ]);
  });
});

/** Healthy zones with a new image. */
async function beginRollout(
  t: TestContext,
): Promise<{ stage: Stage; cluster: Cluster; seen: ReturnType<typeof witness> }> {
  const stage = await setStage();
  t.after(() => stage.close());
  deploy(stage, "x:1");
  await stage.time.advance(2000);
  deploy(stage, "x:2");
  await stage.time.advance(100);
  return { stage, cluster: stage.connect().cluster, seen: witness(stage) };
}

describe("a step that fails, or finds another zone", () => {
  it("what one step throws fails that step alone, and is told", async (t) => {
    const { stage, cluster } = await beginRollout(t);
    deploy(stage, "x:1", { group: "store" });
    await stage.time.advance(2000);
    const told: string[] = [];
    const onOutcome = ({ group }: { readonly group: string }): void => {
      if (group === "ingester") throw new Error("no report should");
    };
    const onError = (_: unknown, key: string): void => void told.push(key);
    const result = await tickOnce(stage, cluster, { onOutcome, onError });
    assert.deepEqual(
      result.outcomes.map(({ group }) => group),
      ["store"],
    );
    assert.deepEqual([told, result.phasedFailed], [["default/ingester"], true]);
  });

  it("a zone deleted and recreated between decision and action is not touched, and is no failure", async (t) => {
    const { stage, cluster, seen } = await beginRollout(t);
    const remake = (): void => {
      const { store } = stage.emulator;
      const set = store.get("statefulsets.apps", "default", "ingester-zone-a");
      assert.ok(set);
      store.remove("statefulsets.apps", "default", "ingester-zone-a");
      const { name, namespace = "default", labels = {} } = set.metadata;
      store.create("statefulsets.apps", { ...set, metadata: { name, namespace, labels } });
    };
    const recreating: Cluster = {
      ...cluster,
      patch: (...call) => {
        remake();
        return cluster.patch(...call);
      },
    };
    const { outcomes } = await tickOnce(stage, recreating);
    assert.deepEqual(
      outcomes.map((outcome) => outcome.state),
      ["superseded"],
    );
    assert.deepEqual(seen.deleted, []);
  });
});
