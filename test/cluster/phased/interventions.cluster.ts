/** What users do in the middle of a phased rollout, and around it, on the real control plane. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { HELD } from "../../../reconciler/phased/target.ts";
import { runKubectl } from "../stage/kubectl.ts";
import { createManifest, deleteManifest, renderManifests } from "../stage/manifests.ts";
import { until } from "../stage/until.ts";
import { FAST, phasedScenario, type PhasedStage } from "./phased-stage.ts";
import { adopt, untilRolled } from "./roll.ts";

/** kubectl, which succeeds. */
async function kubectl({ namespace }: PhasedStage, args: readonly string[], input?: object): Promise<void> {
  const { code, text } = await runKubectl(["-n", namespace, ...args], input);
  assert.equal(code, 0, text);
}

phasedScenario(
  "under the policy, users release no pod by the partition, until they remove the claim",
  async (stage) => {
    const policy = await renderManifests(stage.namespace, { folder: "infra/manifests/phased-policy" });
    try {
      for (const manifest of policy) await createManifest(stage.admin, manifest);
      await stage.createSet();
      const reconciler = await adopt(stage);
      await untilKept(stage);
      stage.prometheus.isFiring = true;
      await stage.roll("app:2");
      await stage.until("failed checks", ({ status }) => status?.rollingPodStatus?.status === "WaitForChecks");
      await reconciler.kill();
      const { metadata, spec } = await stage.call<{ metadata: object; spec: object }>(
        "GET",
        `/apis/apps/v1/namespaces/${stage.namespace}/statefulsets/db`,
      );
      const bare = { ...spec, updateStrategy: { type: "RollingUpdate" } };
      await stage.patchZone("db", { spec: PARTITION_0 });
      await kubectl(stage, ["replace", "-f", "-"], {
        apiVersion: "apps/v1",
        kind: "StatefulSet",
        metadata: { ...metadata, annotations: {}, resourceVersion: undefined },
        spec: bare,
      });
      // The StatefulSet controller would have acted on either by then.
      await sleep(2000);
      assert.equal(await stage.partition(), HELD);
      assert.deepEqual(await stage.images(), ["db-0@app:1", "db-1@app:1", "db-2@app:1"]);
      await kubectl(stage, ["annotate", "statefulset", "db", "sts.plus/phasedRollout-"]);
      await kubectl(stage, ["patch", "statefulset", "db", "-p", JSON.stringify({ spec: PARTITION_0 })]);
      await stage.timeline.until(
        "all pods at app:2",
        () => stage.timeline.statefulSets.get("db")?.status?.updatedReplicas === 3,
      );
      stage.prometheus.isFiring = false;
      stage.start(FAST);
      await stage.roll("app:3");
      await untilRolled(stage, "app:3", 3);
    } finally {
      for (const manifest of policy) await deleteManifest(stage.admin, manifest);
    }
  },
);

const PARTITION_0 = { updateStrategy: { rollingUpdate: { partition: 0 } } };

/** The API server takes a policy into account a moment after it has stored it. */
async function untilKept({ call, namespace }: PhasedStage): Promise<void> {
  const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets/db?dryRun=All`;
  await until("the policy keeps the partition", async () => {
    const { spec } = await call<{ spec: typeof PARTITION_0 }>("PATCH", path, { spec: PARTITION_0 });
    return spec.updateStrategy.rollingUpdate.partition === 3;
  });
}

phasedScenario(
  "installed with a template that never comes up, the template that mends it reaches all pods",
  async (stage) => {
    await stage.createSet({ policy: "Parallel", crashes: true });
    await adopt(stage);
    await stage.roll("app:2");
    await untilRolled(stage, "app:2", 3);
  },
);

phasedScenario("a StatefulSet that is deleted and created again is adopted again", async (stage) => {
  await stage.createSet();
  await adopt(stage);
  await stage.remove(`/apis/apps/v1/namespaces/${stage.namespace}/statefulsets/db`);
  await stage.until("not found", ({ status }) => status?.phase === "ErrorSTSNotFound");
  await stage.timeline.until("all pods gone", () => stage.timeline.pods.size === 0);
  await stage.createSet();
  await untilRolled(stage, "app:1", 3);
  // Without its pods, as where a field that cannot be changed is: they have never had the new template.
  stage.prometheus.isFiring = true;
  await stage.remove(`/apis/apps/v1/namespaces/${stage.namespace}/statefulsets/db?propagationPolicy=Orphan`);
  await stage.timeline.until("the StatefulSet is gone", () => !stage.timeline.statefulSets.has("db"));
  await stage.createSet({ image: "app:2", partition: 3 });
  await stage.until("failed checks", ({ status }) => status?.rollingPodStatus?.status === "WaitForChecks");
  assert.deepEqual(await stage.images(), ["db-0@app:1", "db-1@app:1", "db-2@app:1"]);
  stage.prometheus.isFiring = false;
  await untilRolled(stage, "app:2", 3);
});

/** What docs/guides/phased-rollouts.md tells a pipeline to do after its apply. */
async function waitUpdated({ namespace }: PhasedStage, build: string, seconds = 240): Promise<number> {
  const patch = JSON.stringify({ spec: { checkpoint: build } });
  const patched = await runKubectl(["-n", namespace, "patch", "phasedrollout", "guard", "--type=merge", "-p", patch]);
  assert.equal(patched.code, 0, patched.text);
  return (
    await runKubectl([
      "-n",
      namespace,
      "wait",
      "--for=condition=Updated",
      `--timeout=${seconds}s`,
      "phasedrollout/guard",
    ])
  ).code;
}

phasedScenario(
  "kubectl wait ends with the template that was applied before it, and not while no reconciler runs",
  async (stage) => {
    await stage.createSet();
    const first = await adopt(stage);
    for (const image of ["app:2", "app:3"]) {
      await stage.roll(image);
      assert.equal(await waitUpdated(stage, image), 0);
      assert.deepEqual(
        await stage.images(),
        [0, 1, 2].map((index) => `db-${index}@${image}`),
      );
    }
    assert.equal(await first.end(), 0);
    await stage.roll("app:4");
    assert.equal(await waitUpdated(stage, "app:4", 2), 1);
    stage.start(FAST);
    assert.equal(await waitUpdated(stage, "app:4 again"), 0);
    assert.deepEqual(await stage.images(), ["db-0@app:4", "db-1@app:4", "db-2@app:4"]);
  },
);
