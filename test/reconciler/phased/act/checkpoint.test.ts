/**
 * How a pipeline waits for a PhasedRollout: no `Updated` with the current generation is older than the last change of
 * `spec.checkpoint` (§16.13).
 */
import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { phasedRollouts } from "../../../../infra/kubernetes/custom-resources.ts";
import { applySet, createRollout, type PhasedStage, setPhasedStage } from "./stage.ts";

async function open(t: TestContext): Promise<PhasedStage> {
  const stage = await setPhasedStage();
  t.after(() => stage.close());
  await applySet(stage, "x:1", { partition: 3 });
  await stage.time.advance(10_000);
  createRollout(stage);
  return stage;
}

/** What `kubectl patch` does in a pipeline after its apply. */
async function checkpoint(stage: PhasedStage, build: string): Promise<void> {
  const body = { spec: { checkpoint: build } };
  await stage.connect().cluster.change(phasedRollouts, { namespace: "default", name: "guard", type: "merge", body });
}

/** As `kubectl wait --for=condition=Updated` judges: conditions of an earlier generation are ignored. */
function isUpdated(stage: PhasedStage): boolean {
  const { metadata, status } = stage.rollout();
  const updated = status?.conditions?.find(({ type }) => type === "Updated") as
    | { status: string; observedGeneration: number }
    | undefined;
  return updated?.status === "True" && updated.observedGeneration === metadata.generation;
}

it("after a change of the checkpoint, Updated is True only once all that was applied before is rolled out", async (t) => {
  const stage = await open(t);
  await stage.tickFor(10);
  assert.ok(isUpdated(stage));
  for (const image of ["x:2", "x:3"]) {
    await applySet(stage, image);
    await checkpoint(stage, image);
    assert.ok(!isUpdated(stage));
    for (let i = 0; i < 400 && !isUpdated(stage); i++) await stage.tickFor(1);
    assert.deepEqual(stage.pods(), [`db-0@${image}`, `db-1@${image}`, `db-2@${image}`]);
  }
});

it("a checkpoint that changes with the template while both are read is stated by no status of the earlier template", async (t) => {
  const stage = await open(t);
  const { cluster } = stage.connect();
  let sets = 0;
  let changing = Promise.resolve();
  const change = async (): Promise<void> => {
    await applySet(stage, "x:2");
    await checkpoint(stage, "x:2");
  };
  const reordered: Cluster = {
    ...cluster,
    get: async (resource, ref, call) => {
      if (ref.name === "guard") {
        // If the StatefulSet is read at the same time, this answer comes later.
        await turn();
        await changing;
        return cluster.get(resource, ref, call);
      }
      const earlier = cluster.get(resource, ref, call);
      // The pair that is read after the claim, and that would be reported as updated.
      if (++sets === 2) changing = earlier.then(change);
      await changing;
      return earlier;
    },
  };
  await stage.tick({ cluster: reordered });
  assert.ok(sets >= 2);
  assert.ok(!isUpdated(stage), JSON.stringify(stage.rollout().status));
});
