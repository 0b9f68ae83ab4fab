/**
 * Every write of a tick carries the bounds of the Lease, and takes effect only on the object version that was judged.
 */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { KubeObject } from "../../emulator/objects.ts";
import { deploy, setStage, tickOnce, type Stage } from "../stage.ts";
import { witness } from "../witness.ts";
import { amend } from "../../builders/objects.ts";

const BOUND_MS = 4321;
const PAUSED = { "grafana.com/rollout-paused": "true" };

async function beginRollout(t: TestContext): Promise<Stage> {
  const stage = await setStage();
  t.after(() => stage.close());
  deploy(stage, "x:1");
  await stage.time.advance(2000);
  deploy(stage, "x:2");
  await stage.time.advance(500);
  return stage;
}

/** Calls `onSend` before each write is sent; reads pass. */
function onWrite(cluster: Cluster, onSend: (verb: string, name: string, call: Call | undefined) => void): Cluster {
  return {
    ...cluster,
    create: (resource, creation, call) => (
      onSend("create", resource.plural, call),
      cluster.create(resource, creation, call)
    ),
    replace: (resource, replacement, call) => (
      onSend("replace", replacement.name, call),
      cluster.replace(resource, replacement, call)
    ),
    patch: (resource, patch, call) => (onSend("patch", patch.name, call), cluster.patch(resource, patch, call)),
    change: (resource, patch, call) => (onSend("change", patch.name, call), cluster.change(resource, patch, call)),
    remove: (resource, removal, call) => (
      onSend("remove", removal.name, call),
      cluster.remove(resource, removal, call)
    ),
  };
}

/** Runs `happen` once, after the pods have been listed. */
function afterPods(cluster: Cluster, happen: () => void): Cluster {
  let happened = false;
  return {
    ...cluster,
    async *list(resource, query, call) {
      yield* cluster.list(resource, query, call);
      if (resource.plural !== "pods" || happened) return;
      happened = true;
      happen();
    },
  };
}

const replicasOf = (stage: Stage, name: string): number | undefined =>
  (stage.emulator.store.get("statefulsets.apps", "default", name)?.["spec"] as { replicas?: number }).replicas;

describe("a write", () => {
  it("is bounded by the Lease: deletions, status patches and changes of replicas", async (t) => {
    const stage = await beginRollout(t);
    const seen: Record<string, number> = {};
    const cluster = onWrite(stage.connect().cluster, (verb, name, call) => {
      seen[verb] = (seen[verb] ?? 0) + 1;
      assert.ok((call?.deadlineMs ?? Infinity) <= BOUND_MS, `${verb} ${name} is not bounded`);
    });
    const tick = (): Promise<unknown> =>
      tickOnce(stage, cluster, { fence: { write: () => ({ deadlineMs: BOUND_MS }) } });
    for (let i = 0; i < 100; i++) {
      await tick();
      await stage.time.advance(100);
    }
    amend(stage.emulator.store, "StatefulSet", "ingester-zone-b", {
      annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-a" },
    });
    deploy(stage, "x:2", { zones: ["a"], replicas: 4 });
    await stage.time.advance(1000);
    await tick();
    assert.equal(replicasOf(stage, "ingester-zone-b"), 4);
    assert.equal(seen["remove"], 9);
    assert.ok((seen["patch"] ?? 0) >= 3 && seen["change"] === 1, JSON.stringify(seen));
  });

  it("is not sent once the Lease is lost", async (t) => {
    const stage = await beginRollout(t);
    const { cluster, calls } = stage.connect();
    const write = (): never => {
      throw Object.assign(new Error("lost"), { code: "LeaseLost" });
    };
    const { outcomes } = await tickOnce(stage, cluster, { fence: { write } });
    assert.equal(outcomes[0]?.state, "failed");
    assert.ok(calls.every((call) => call.startsWith("GET")));
  });

  const CHANGES: readonly [string, (stage: Stage) => void][] = [
    [
      "the zone was paused",
      (stage) => amend(stage.emulator.store, "StatefulSet", "ingester-zone-a", { annotations: PAUSED }),
    ],
    [
      "the pod changed",
      (stage) => amend(stage.emulator.store, "Pod", "ingester-zone-a-0", { annotations: { note: "changed" } }),
    ],
    [
      "the pod was recreated",
      ({ emulator: { store } }) => {
        const pod = store.get("pods", "default", "ingester-zone-a-0") as KubeObject;
        store.remove("pods", "default", pod.metadata.name, { gracePeriodSeconds: 0 });
        const { name, namespace = "default", labels = {}, ownerReferences = [] } = pod.metadata;
        store.create("pods", { ...pod, metadata: { name, namespace, labels, ownerReferences } });
      },
    ],
  ];
  for (const [name, change] of CHANGES)
    it(`deletes no pod if ${name} since it was read`, async (t) => {
      const stage = await beginRollout(t);
      const cluster = afterPods(stage.connect().cluster, () => change(stage));
      const uid = (): string | undefined =>
        stage.emulator.store.get("pods", "default", "ingester-zone-a-0")?.metadata.uid;
      const seen = witness(stage);
      const { outcomes } = await tickOnce(stage, cluster);
      assert.equal(outcomes[0]?.state, "superseded");
      assert.deepEqual(
        seen.deleted.filter((pod) => name !== "the pod was recreated" || pod !== "ingester-zone-a-0"),
        [],
      );
      assert.notEqual(uid(), undefined);
    });

  it("changes no replicas if the zone was scaled since it was read", async (t) => {
    const stage = await setStage();
    t.after(() => stage.close());
    deploy(stage, "x:1", { zones: ["a"], replicas: 4 });
    deploy(stage, "x:1", { zones: ["b"], annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-a" } });
    await stage.time.advance(2000);
    const { cluster } = stage.connect();
    const late: Cluster = {
      ...cluster,
      change: (...args) => {
        deploy(stage, "x:1", { zones: ["b"], replicas: 6 });
        return cluster.change(...args);
      },
    };
    const { outcomes } = await tickOnce(stage, late);
    assert.equal(outcomes[0]?.state, "superseded");
    assert.equal(replicasOf(stage, "ingester-zone-b"), 6);
  });
});

describe("a group whose StatefulSets were listed long before its pods", () => {
  it("is read again before the first pod is deleted", async (t) => {
    const stage = await setStage();
    t.after(() => stage.close());
    deploy(stage, "x:1", { zones: ["a", "b"], replicas: 4 });
    await stage.time.advance(3000);
    deploy(stage, "x:2", { zones: ["b"], replicas: 4 });
    await stage.time.advance(1000);
    const seen = witness(stage, 9);
    const { cluster } = stage.connect();
    let isFirst = true;
    const late: Cluster = {
      ...cluster,
      async *list(resource, query, call) {
        if (resource.plural === "pods" && isFirst) {
          isFirst = false;
          amend(stage.emulator.store, "StatefulSet", "ingester-zone-a", { spec: { replicas: 3 } });
        }
        yield* cluster.list(resource, query, call);
        // Other groups have their turn first.
        if (resource.plural === "statefulsets" && isFirst) await stage.time.advance(20_000);
      },
    };
    await tickOnce(stage, late);
    await stage.time.advance(100);
    assert.deepEqual([seen.deleted, seen.violations], [["ingester-zone-a-3"], []]);
  });
});
