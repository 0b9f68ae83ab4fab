import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { deploy, setStage, tickOnce, type Stage } from "../stage.ts";
import { revisions, witness } from "../witness.ts";
import { amend } from "../../builders.ts";

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

  it("a resync lists the pods of all zones in one, and still writes nothing", async () => {
    const { cluster, calls } = stage.connect();
    const { outcomes } = await tickOnce(stage, cluster, { takeResync: () => true });
    assert.deepEqual(calls, ["GET apps/v1/statefulsets collection", "GET core/v1/pods collection"]);
    const withPods = outcomes.flatMap(({ zones }) => zones.filter((zone) => "pods" in zone));
    assert.deepEqual(withPods, [], "pods are dropped once their group is done");
  });

  it("requests each disruption right before the deletion; a denied pod stays, the next one follows, the next zone does not", async () => {
    deploy(stage, "x:3", { isBound: true });
    const { store } = stage.emulator;
    for (const { metadata } of store.list("statefulsets.apps", "default"))
      amend(store, "StatefulSet", metadata.name, { annotations: { "rollout-max-unavailable": "2" } });
    await stage.time.advance(1000);
    const seen = witness(stage, 2);
    const requested: [string, number][] = [];
    const { cluster } = stage.connect();
    const denyAll = await tickOnce(stage, cluster, {
      mayDisrupt: async (pod, zone) => {
        requested.push([pod.name, zone.maxUnavailable]);
        return { action: "hold", reason: "BudgetSpent", message: `${pod.name} denied`, objects: [zone, pod] };
      },
    });
    assert.deepEqual(requested, [
      ["ingester-zone-a-0", 2],
      ["ingester-zone-a-1", 2],
    ]);
    assert.equal(denyAll.outcomes[0]?.state, "held");
    assert.deepEqual(seen.deleted, []);
    await tickOnce(stage, cluster, {
      mayDisrupt: async (pod, zone) =>
        pod.name.endsWith("-0") ? { action: "hold", reason: "BudgetSpent", message: "no", objects: [zone] } : undefined,
    });
    assert.deepEqual(seen.deleted, ["ingester-zone-a-1"]);
  });

  it("pods deleted before an error are reported, and a namespace that cannot be read does not hold the others", async () => {
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
