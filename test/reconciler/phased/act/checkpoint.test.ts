/**
 * How a pipeline waits for a PhasedRollout: no `Updated` with the current generation is older than the last change of
 * `spec.checkpoint` (§16.13).
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { phasedRollouts } from "../../../../infra/kubernetes/custom-resources.ts";
import { play } from "./play.ts";
import { applySet } from "./stage.ts";

it("a checkpoint that changes with the template while both are read is stated by no status of the earlier template", () =>
  play({ partition: 3 }, async (stage) => {
    const { cluster } = stage.connect();
    let sets = 0;
    let changing = Promise.resolve();
    const change = async (): Promise<void> => {
      await applySet(stage, "x:2");
      const body = { spec: { checkpoint: "x:2" } };
      await cluster.change(phasedRollouts, { namespace: "default", name: "guard", type: "merge", body });
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
    // As `kubectl wait --for=condition=Updated` judges: conditions of an earlier generation are ignored.
    const { metadata, status } = stage.rollout();
    const updated = status?.conditions?.find(({ type }) => type === "Updated");
    const isStated = updated?.status === "True" && updated.observedGeneration === metadata.generation;
    assert.ok(!isStated, JSON.stringify(status));
  }));
