/**
 * Writes that the API server accepts and changes, and views that have become old: no zone may lose a pod by them while
 * another one does.
 */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { deploy, setStage, type Stage, tickOnce } from "../stage.ts";
import { witness } from "../witness.ts";
import { amend } from "../../builders.ts";

const LEADER = { "grafana.com/rollout-downscale-leader": "ingester-zone-a" };
const LAST = "grafana.com/last-downscale";

async function open(t: TestContext): Promise<Stage> {
  const stage = await setStage();
  t.after(() => stage.close());
  return stage;
}

/** Writes of a zone's replicas have this effect instead; undefined leaves the replicas as they are. */
function changing(cluster: Cluster, zone: string, replicas: number | undefined): Cluster {
  return {
    ...cluster,
    change: (resource, patch, call) => {
      if (!patch.name.endsWith(zone)) return cluster.change(resource, patch, call);
      const { spec: _, ...rest } = patch.body as Record<string, unknown>;
      const body = { ...rest, ...(replicas !== undefined && { spec: { replicas } }) };
      return cluster.change(resource, { ...patch, body }, call);
    },
  };
}

describe("a scale that is stored with another number", () => {
  it("ends the tick of its group, as the zone may lose pods by it", async (t) => {
    const stage = await open(t);
    deploy(stage, "x:1", { zones: ["a"], replicas: 2 });
    deploy(stage, "x:1", { zones: ["b", "c"], replicas: 4, annotations: LEADER });
    await stage.time.advance(3000);
    deploy(stage, "x:2", { zones: ["a"], replicas: 2 });
    deploy(stage, "x:2", { zones: ["b", "c"], replicas: 4 });
    await stage.time.advance(1000);
    const seen = witness(stage, 9);
    const { outcomes } = await tickOnce(stage, changing(stage.connect().cluster, "b", 3));
    await stage.time.advance(100);
    assert.equal(outcomes[0]?.state, "superseded");
    assert.deepEqual([seen.deleted, seen.violations], [["ingester-zone-b-3"], []]);
  });
});

describe("a downscale that is accepted and changes nothing", () => {
  it("leaves no time behind that would keep the other zones from shrinking", async (t) => {
    const stage = await open(t);
    const labels = { "grafana.com/min-time-between-zones-downscale": "1m" };
    deploy(stage, "x:1", { zones: ["a"], replicas: 2, labels });
    deploy(stage, "x:1", { zones: ["b", "c"], replicas: 4, labels, annotations: LEADER });
    await stage.time.advance(3000);
    const { outcomes } = await tickOnce(stage, changing(stage.connect().cluster, "b", undefined));
    const [, b] = stage.emulator.store.list("statefulsets.apps", "default");
    assert.match(outcomes[0]?.scalingHolds[0]?.message ?? "", /something pins them/);
    assert.equal(b?.metadata.annotations?.[LAST], undefined);
  });

  it("nor one that others would make an upscale: nothing is written", async (t) => {
    const stage = await open(t);
    const labels = { "grafana.com/min-time-between-zones-downscale": "1m" };
    deploy(stage, "x:1", { zones: ["a"], replicas: 2, labels });
    deploy(stage, "x:1", { zones: ["b"], replicas: 4, labels, annotations: LEADER });
    await stage.time.advance(3000);
    const zone = () => stage.emulator.store.get("statefulsets.apps", "default", "ingester-zone-b");
    const before = zone();
    const { outcomes } = await tickOnce(stage, changing(stage.connect().cluster, "b", 5));
    assert.match(outcomes[0]?.scalingHolds[0]?.message ?? "", /ingester-zone-b would have 5 replicas: something pins/);
    assert.deepEqual(zone(), before);
  });
});

describe("a group whose StatefulSets were listed long before its pods", () => {
  it("is read again before the first pod is deleted", async (t) => {
    const stage = await open(t);
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
