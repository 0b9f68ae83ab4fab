/**
 * Zones that follow a leader, while answers are lost and other clients change the group between the tick's reads and
 * writes.
 */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Lease } from "../../../infra/kubernetes/resources.ts";
import { nameLease, pendingOf } from "../../../reconciler/downscale/act/downscale-lease.ts";
import { MIRROR, mirrorStage } from "../scaling/mirror-stage.ts";
import { deploy, setStage, tickOnce, type Stage } from "../stage.ts";
import { amend, add } from "../../builders.ts";

const LEADER = { "grafana.com/rollout-downscale-leader": "ingester-zone-a" };
const LAST = "grafana.com/last-downscale";

/** Zone a with `replicas`, and zones b and c with 4 that follow it, at least 12 hours apart. */
async function follow(t: TestContext, replicas: number): Promise<Stage> {
  const stage = await setStage();
  t.after(() => stage.close());
  const labels = { "grafana.com/min-time-between-zones-downscale": "12h" };
  deploy(stage, "x:1", { zones: ["a"], replicas, labels });
  deploy(stage, "x:1", { zones: ["b", "c"], replicas: 4, labels, annotations: LEADER });
  await stage.time.advance(3000);
  return stage;
}

const replicas = (stage: Stage): (number | undefined)[] =>
  stage.emulator.store
    .list("statefulsets.apps", "default")
    .map((set) => (set["spec"] as { replicas?: number }).replicas);

/** Changes a zone's annotations once, after the first list of StatefulSets. */
function annotateAfterList(
  stage: Stage,
  zone: string,
  annotations: Record<string, string>,
): { cluster: Cluster; calls: string[] } {
  const { cluster, calls } = stage.connect();
  let lists = 0;
  const late: Cluster = {
    ...cluster,
    async *list(resource, query, call) {
      yield* cluster.list(resource, query, call);
      if (resource.plural !== "statefulsets" || ++lists > 1) return;
      amend(stage.emulator.store, "StatefulSet", `ingester-zone-${zone}`, { annotations });
    },
  };
  return { cluster: late, calls };
}

const isWrite = (call: string): boolean => !call.startsWith("GET");

describe("a zone that is scaled", () => {
  it("without an answer is the only one in its tick: the write may have taken effect", async (t) => {
    const stage = await follow(t, 6);
    const { cluster } = stage.connect();
    const patchOfB = { verb: "patch", resource: "statefulsets.apps", name: "ingester-zone-b", times: 1 } as const;
    stage.emulator.faults.inject({ effect: { kind: "dropAfter" }, ...patchOfB });
    await tickOnce(stage, cluster);
    assert.deepEqual(replicas(stage), [6, 6, 4]);
    await tickOnce(stage, cluster);
    assert.deepEqual(replicas(stage), [6, 6, 6]);
  });

  it("and refused leaves its turn to the next zone", async (t) => {
    const stage = await follow(t, 6);
    const { cluster } = stage.connect();
    const refusing: Cluster = {
      ...cluster,
      change: (resource, patch, call) =>
        cluster.change(resource, patch.name.endsWith("b") ? { ...patch, name: `${patch.name}-refused` } : patch, call),
    };
    stage.emulator.faults.inject({
      effect: { kind: "tooMany", retryAfterSeconds: 60 },
      verb: "patch",
      resource: "statefulsets.apps",
      name: "ingester-zone-b-refused",
    });
    await tickOnce(stage, refusing);
    assert.deepEqual(replicas(stage), [6, 4, 6]);
  });
});

describe("a zone that is to shrink", () => {
  it("is not written if it has changed since it was listed", async (t) => {
    const stage = await follow(t, 2);
    const { cluster, calls } = annotateAfterList(stage, "b", { note: "changed" });
    const { outcomes } = await tickOnce(stage, cluster);
    assert.equal(outcomes[0]?.state, "superseded");
    assert.deepEqual([replicas(stage), calls.filter(isWrite)], [[2, 4, 4], []]);
  });

  it("waits for another that has shrunk since it was listed", async (t) => {
    const stage = await follow(t, 2);
    const { cluster, calls } = annotateAfterList(stage, "c", { [LAST]: new Date(stage.time.now()).toISOString() });
    await tickOnce(stage, cluster);
    assert.deepEqual([replicas(stage), calls.filter(isWrite)], [[2, 4, 4], []]);
  });

  it("waits for another whose downscale was admitted and may still be stored, in a group without a leader and a minimum time", async (t) => {
    const on = await mirrorStage();
    t.after(() => on.stage.close());
    await on.reference(2);
    await on.zones({ replicas: 3, annotations: MIRROR }, { replicas: 3 });
    const { store } = on.stage.emulator;
    const { uid, generation } = store.get("statefulsets.apps", "default", "ingester-zone-b")?.metadata ?? {};
    const at = new Date(on.stage.time.now()).toISOString();
    const note = { "ingester-zone-b": { uid, generation, from: 3, to: 2, prepared: { start: 2, end: 3 }, at } };
    add(store, "Lease", nameLease("ingester", "ingester-zone-b"), {
      annotations: { "zonewise/pending-downscales": JSON.stringify(note) },
    });
    const { patches, outcome } = await on.pass();
    assert.deepEqual(
      patches.filter((patch) => patch.startsWith("statefulsets")),
      [],
    );
    const message = `ingester-zone-a waits to shrink: the downscale of ingester-zone-b from 3 to 2 replicas, admitted at ${at}, may still be stored`;
    assert.partialDeepStrictEqual(outcome.scalingHolds, [{ reason: "OtherZoneNotReady", message }]);
    await on.stage.time.advance(90_000);
    assert.deepEqual(
      (await on.pass()).patches.filter((patch) => patch.startsWith("statefulsets")),
      ["statefulsets ingester-zone-a 2"],
    );
    const [lease] = store.list("leases.coordination.k8s.io", "default");
    assert.deepEqual(pendingOf(lease as Lease), note);
  });
});
