import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { deploy, setStage, tickOnce, type Stage } from "../stage.ts";
import { witness } from "../witness.ts";

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
