/**
 * Replicas that change during a phased rollout, on the real control plane (§16.15): as users and autoscalers change
 * them.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { runKubectl } from "../stage/kubectl.ts";
import { createManifest, deleteManifest, renderManifests } from "../stage/manifests.ts";
import { until } from "../stage/until.ts";
import { type PhasedStage, phasedScenario } from "./phased-stage.ts";
import { adopt, ROLLOUT_MS, untilHeldAt, untilRolled } from "./roll.ts";

async function kubectl({ namespace }: PhasedStage, ...args: string[]): Promise<void> {
  const { code, text } = await runKubectl(["-n", namespace, ...args]);
  assert.equal(code, 0, text);
}

const scale = (stage: PhasedStage, replicas: number): Promise<void> =>
  kubectl(stage, "scale", "statefulset", "db", `--replicas=${replicas}`);

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

for (const policy of ["OrderedReady", "Parallel"] as const) {
  phasedScenario(
    `before the first success, kubectl scale adds no pod of the new template, back and forth (${policy})`,
    async (stage) => {
      await stage.createSet({ policy });
      await adopt(stage);
      stage.prometheus.isFiring = true;
      await stage.roll("app:2");
      await untilHeldAt(stage, 3);
      for (const replicas of [6, 4, 6, 2, 5]) {
        await scale(stage, replicas);
        await untilReady(stage, replicas);
        assert.deepEqual(await released(stage), []);
      }
      await untilHeldAt(stage, 5);
      stage.prometheus.isFiring = false;
      await untilRolled(stage, "app:2", 5);
    },
  );

  phasedScenario(
    `after a release, what kubectl scale adds returns, and has steps of its own (${policy})`,
    async (stage) => {
      await stage.createSet({ policy });
      await adopt(stage);
      stage.prometheus.firesFrom = 2;
      await stage.roll("app:2");
      await untilHeldAt(stage, 2);
      stage.prometheus.isFiring = true;
      await scale(stage, 6);
      await untilHeldAt(stage, 6);
      await untilReady(stage, 6);
      assert.deepEqual(await released(stage), ["db-2@app:2"]);
      for (const replicas of [3, 6]) {
        await scale(stage, replicas);
        await untilHeldAt(stage, replicas);
        await untilReady(stage, replicas);
        assert.deepEqual(await released(stage), ["db-2@app:2"]);
      }
      stage.prometheus.isFiring = false;
      stage.prometheus.firesFrom = -1;
      await untilRolled(stage, "app:2", 6);
    },
  );
}

phasedScenario("an autoscaler that goes back and forth every moment keeps no rollout from its end", async (stage) => {
  await stage.createSet({ policy: "Parallel" });
  await adopt(stage);
  await stage.roll("app:2");
  const over = new AbortController();
  const scaling = (async () => {
    for (let i = 0; !over.signal.aborted; i++) {
      await scale(stage, 3 + (i % 2));
      await sleep(4000);
    }
  })();
  await stage.timeline.until(
    "all pods at app:2",
    () => {
      const { spec, status } = stage.timeline.statefulSets.get("db") ?? {};
      return (
        spec?.template.spec?.containers[0]?.image === "app:2" &&
        (status?.updatedReplicas ?? 0) >= 3 &&
        status?.currentRevision === status?.updateRevision
      );
    },
    ROLLOUT_MS,
  );
  over.abort();
  await scaling;
});

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
