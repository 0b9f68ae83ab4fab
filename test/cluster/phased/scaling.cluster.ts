/** Replicas that change during a phased rollout under the policy that guards partitions (§16.15). */
import assert from "node:assert/strict";
import { createManifest, deleteManifest, renderManifests } from "../stage/manifests.ts";
import { until } from "../stage/until.ts";
import { type PhasedStage, phasedScenario } from "./phased-stage.ts";
import { adopt, untilHeldAt, untilRolled } from "./roll.ts";

async function untilReady({ timeline, ...stage }: PhasedStage, replicas: number): Promise<void> {
  await timeline.until(`${replicas} pods are ready`, () => {
    const { spec, status } = timeline.statefulSets.get("db") ?? {};
    return spec?.replicas === replicas && status?.readyReplicas === replicas && status.replicas === replicas;
  });
  await timeline.caughtUp();
  assert.equal((await stage.images()).length, replicas);
}

const released = async (stage: PhasedStage, image = "app:2"): Promise<string[]> =>
  (await stage.images()).filter((pod) => pod.endsWith(`@${image}`));

phasedScenario(
  "a template and more replicas in one write, under the policy, and replicas by a write in the middle",
  async (stage) => {
    const policy = await renderManifests(stage.namespace, { folder: "infra/manifests/phased-policy" });
    try {
      for (const manifest of policy) await createManifest(stage.admin, manifest);
      await stage.createSet({ policy: "Parallel" });
      await adopt(stage);
      const path = `/apis/apps/v1/namespaces/${stage.namespace}/statefulsets/db?dryRun=All`;
      await until("the policy keeps the partition", async () => {
        const updateStrategy = { rollingUpdate: { partition: 0 } };
        const { spec } = await stage.call<{ spec: { updateStrategy: typeof updateStrategy } }>("PATCH", path, {
          spec: { updateStrategy },
        });
        return spec.updateStrategy.rollingUpdate.partition === 3;
      });
      stage.prometheus.isFiring = true;
      await stage.patchZone("db", {
        spec: { replicas: 5, template: { spec: { containers: [{ name: "app", image: "app:2" }] } } },
      });
      await untilHeldAt(stage, 5);
      await untilReady(stage, 5);
      assert.deepEqual(await released(stage), []);
      stage.prometheus.isFiring = false;
      stage.prometheus.firesFrom = 4;
      await untilHeldAt(stage, 4);
      stage.prometheus.isFiring = true;
      await stage.patchZone("db", { spec: { replicas: 7 } });
      await untilReady(stage, 7);
      assert.deepEqual(await released(stage), ["db-4@app:2"]);
      stage.prometheus.isFiring = false;
      stage.prometheus.firesFrom = -1;
      await untilRolled(stage, "app:2", 7);
    } finally {
      for (const manifest of policy) await deleteManifest(stage.admin, manifest);
    }
  },
);
