/** Phased rollouts under the rights of the manifests, with the real StatefulSet controller (§16). */
import assert from "node:assert/strict";
import { adopt, deletedPods, untilRolled } from "./roll.ts";
import { phasedScenario } from "./phased-stage.ts";
import { returns } from "../stage/invariants.ts";

for (const [policy, replicas, maxUnavailable] of [
  ["OrderedReady", 3, 1],
  ["Parallel", 5, 3],
] as const)
  phasedScenario(
    `${replicas} pods, ${policy}: each is released by at least two checks of its own, in order, once`,
    async (stage) => {
      await stage.createSet({ policy, replicas, maxUnavailable });
      const reconciler = await adopt(stage);
      assert.equal(await stage.partition(), replicas);
      await stage.roll("app:2");
      await untilRolled(stage, "app:2", replicas);
      assert.deepEqual(
        deletedPods(stage),
        Array.from({ length: replicas }, (_, i) => `db-${replicas - 1 - i}`),
      );
      // A query whose answer could not be written is asked again.
      assert.ok(stage.prometheus.asked >= 2 * replicas, `${stage.prometheus.asked} queries`);
      assert.equal(await reconciler.end(), 0);
      for (const reason of ["RolloutStarted", "RolloutCompleted"])
        assert.equal((await stage.events(reason)).length, 1, reason);
    },
  );

for (const policy of ["OrderedReady", "Parallel"] as const)
  phasedScenario(`a revert in the middle brings the pods back at once, without checks (${policy})`, async (stage) => {
    await stage.createSet({ policy });
    await adopt(stage);
    await stage.roll("app:2", { "sim/crash": "true" });
    await stage.until(
      "waits for the broken pod",
      ({ status }) =>
        status?.rollingPodStatus?.status === "WaitForAllPodsToBeAvailable" && status.rollingPodStatus.partition === 2,
    );
    await stage.timeline.until("pod 2 has the broken template", () => returns(stage.timeline.entries).length === 1);
    const { asked } = stage.prometheus;
    await stage.roll("app:1");
    await untilRolled(stage, "app:1", 3);
    assert.equal(stage.prometheus.asked, asked);
    assert.deepEqual(await stage.images(), ["db-0@app:1", "db-1@app:1", "db-2@app:1"]);
    assert.deepEqual(deletedPods(stage), ["db-2", "db-2"]);
  });
