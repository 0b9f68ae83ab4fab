import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { errorOfStatus } from "../../../infra/kubernetes/api-error.ts";
import { deploy, setStage, tickOnce, type Stage } from "../stage.ts";
import { witness, type Witness } from "../witness.ts";
import { amend } from "../../builders.ts";

const FOLLOWS_A = { "grafana.com/rollout-downscale-leader": "ingester-zone-a" };
const TWO = { "rollout-max-unavailable": "2" };
const LABEL: Readonly<Record<string, string>> = { "grafana.com/min-time-between-zones-downscale": "12h" };

let stage: Stage;
let seen: Witness;
let patches: unknown[];
beforeEach(async () => {
  stage = await setStage();
  patches = [];
});
afterEach(() => stage.close());

/** Zone a leads, zone b follows; all pods are ready, then the named zones get a new image. */
async function zones(
  a: number,
  b: number,
  { outdated = ["b"], lastDownscale = "", labels = LABEL } = {},
): Promise<void> {
  deploy(stage, "x:1", {
    zones: ["a"],
    replicas: a,
    annotations: { ...TWO, ...(lastDownscale && { "grafana.com/last-downscale": lastDownscale }) },
  });
  deploy(stage, "x:1", { zones: ["b"], replicas: b, annotations: { ...TWO, ...FOLLOWS_A }, labels });
  await stage.time.advance(3000);
  seen = witness(stage, 2);
  for (const zone of outdated) deploy(stage, "x:2", { zones: [zone], replicas: zone === "a" ? a : b });
  await stage.time.advance(200);
}

function connect(refuse = false): Cluster {
  const { cluster } = stage.connect();
  return {
    ...cluster,
    change: async (resource, patch, call) => {
      if (!patch.dryRun) patches.push(patch.body);
      if (refuse) throw new RolloutError("Forbidden", "denied the request");
      return cluster.change(resource, patch, call);
    },
  };
}

const replicasOf = (name: string): unknown =>
  (stage.emulator.store.get("statefulsets.apps", "default", name)?.["spec"] as { replicas?: number }).replicas;
const oneHourAgo = (): string => new Date(stage.time.now() - 3_600_000).toISOString();

describe("scaling and rollout in one tick", () => {
  it("a waiting follower is not scaled, and the rollout continues", async () => {
    await zones(2, 3, { lastDownscale: oneHourAgo() });
    const { outcomes } = await tickOnce(stage, connect());
    assert.deepEqual([patches, seen.deleted], [[], ["ingester-zone-b-0", "ingester-zone-b-1"]]);
    assert.match(
      outcomes[0]?.scalingHolds[0]?.message ?? "",
      /^ingester-zone-b waits: ingester-zone-a was downscaled 1h ago, 10h59m left of 12h$/,
    );
  });

  it("a follower is scaled by one patch with its version and the time, and nothing is deleted in that pass", async () => {
    await zones(2, 3);
    const before = stage.emulator.store.get("statefulsets.apps", "default", "ingester-zone-b")?.metadata
      .resourceVersion;
    const { outcomes, acted } = await tickOnce(stage, connect());
    const annotations = { "grafana.com/last-downscale": `${new Date(stage.time.now()).toISOString().slice(0, 19)}Z` };
    assert.deepEqual(
      [patches, seen.deleted],
      [[{ metadata: { resourceVersion: before, annotations }, spec: { replicas: 2 } }], []],
    );
    assert.deepEqual([outcomes[0]?.state, acted, replicasOf("ingester-zone-b")], ["acted", true, 2]);
  });

  it("a refused patch does not end the pass: the rollout continues", async () => {
    await zones(2, 3);
    const { outcomes } = await tickOnce(stage, connect(true));
    assert.deepEqual(
      [patches, seen.deleted, replicasOf("ingester-zone-b")],
      [[], ["ingester-zone-b-0", "ingester-zone-b-1"], 3],
    );
    assert.deepEqual(
      outcomes[0]?.scalingHolds.map(({ reason }) => reason),
      ["ScaleRefused"],
    );
  });

  it("a webhook that cannot be called holds only its zone: the rollout continues", async () => {
    await zones(2, 3);
    const message = 'Internal error occurred: failed calling webhook "x": no answer';
    const down = errorOfStatus(500, JSON.stringify({ status: "Failure", message, reason: "InternalError" }));
    const { outcomes } = await tickOnce(stage, { ...connect(), change: () => Promise.reject(down) });
    assert.deepEqual(seen.deleted, ["ingester-zone-b-0", "ingester-zone-b-1"]);
    assert.deepEqual(
      outcomes[0]?.scalingHolds.map(({ reason }) => reason),
      ["ScaleRefused"],
    );
  });

  const LOST: readonly [name: string, error: RolloutError, done: boolean][] = [
    ["its answer was lost, but it took effect", new RolloutError("Timeout", "no answer"), true],
    ["its answer was lost, and it did not take effect", new RolloutError("Unreachable", "reset"), false],
    [
      "it may still take effect after a server error",
      new RolloutError("ServerError", "etcdserver: request timed out"),
      false,
    ],
  ];
  for (const [name, error, done] of LOST) {
    it(`nothing else is done to the group after a change of replicas with an unknown effect: ${name}`, async () => {
      // Zone a, not the scaled zone, is the next to lose pods.
      await zones(2, 3, { outdated: ["a"] });
      const lost = connect();
      const { outcomes } = await tickOnce(stage, {
        ...lost,
        change: async (...call) => {
          if (done || call[1].dryRun) await lost.change(...call);
          if (call[1].dryRun) return {} as never;
          throw error;
        },
      });
      assert.deepEqual([outcomes[0]?.state, seen.deleted, replicasOf("ingester-zone-b")], ["failed", [], done ? 2 : 3]);
    });
  }

  it("a follower waits for a pod that a revert has replaced in another zone, although the revisions there are equal again", async () => {
    await zones(3, 3, { outdated: [], labels: {} });
    deploy(stage, "x:1", { zones: ["c"], annotations: TWO });
    await stage.time.advance(3000);
    const { cluster } = stage.connect();
    const uidOf = (pod: string): unknown => stage.emulator.store.get("pods", "default", pod)?.metadata.uid;
    const before = uidOf("ingester-zone-c-0");
    deploy(stage, "x:2", { zones: ["c"] });
    await stage.time.advance(200);
    deploy(stage, "x:1", { zones: ["c"] });
    stage.emulator.store.remove("pods", "default", "ingester-zone-c-0");
    deploy(stage, "x:1", { zones: ["a"], replicas: 2 });
    for (let i = 0; i < 100 && [before, undefined].includes(uidOf("ingester-zone-c-0")); i++)
      await stage.time.advance(10);
    await stage.time.advance(50);
    const { outcomes } = await tickOnce(stage, cluster);
    assert.deepEqual(
      outcomes[0]?.scalingHolds.map(({ reason, message }) => [reason, message]),
      [["OtherZoneNotReady", "ingester-zone-b waits to shrink: ingester-zone-c-0: not ready"]],
    );
    assert.equal(replicasOf("ingester-zone-b"), 3);
    await stage.time.advance(2000);
    await tickOnce(stage, cluster);
    assert.equal(replicasOf("ingester-zone-b"), 2);
  });

  /** A connection that runs `happen` between the tick's list and the last read before a zone shrinks. */
  function meanwhile(happen: () => void): Cluster {
    const { cluster } = stage.connect();
    let lists = 0;
    return {
      ...cluster,
      async *list(resource, query, call) {
        if (resource.plural === "statefulsets" && ++lists === 2) happen();
        yield* cluster.list(resource, query, call);
      },
    };
  }

  it("a follower is not scaled below a leader that has grown again since the list", async () => {
    await zones(2, 3);
    const late = meanwhile(() => deploy(stage, "x:1", { zones: ["a"], replicas: 3 }));
    const { outcomes } = await tickOnce(stage, late);
    assert.deepEqual([outcomes[0]?.state, replicasOf("ingester-zone-b")], ["superseded", 3]);
  });

  it("a downscale of another zone since the list counts", async () => {
    await zones(2, 3);
    const late = meanwhile(() => {
      const annotations = { "grafana.com/last-downscale": oneHourAgo() };
      amend(stage.emulator.store, "StatefulSet", "ingester-zone-a", { annotations });
    });
    const { outcomes } = await tickOnce(stage, late);
    assert.deepEqual(
      [outcomes[0]?.scalingHolds.map(({ reason }) => reason), replicasOf("ingester-zone-b")],
      [["MinTimeBetweenZones"], 3],
    );
  });
});
