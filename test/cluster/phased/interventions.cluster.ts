/** What users do in the middle of a phased rollout, under the rights of the manifests, with the real StatefulSet controller. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { HELD } from "../../../reconciler/phased/target.ts";
import { runKubectl } from "../stage/kubectl.ts";
import { enforcePolicies } from "../stage/manifests.ts";
import { until } from "../stage/until.ts";
import { FAST, phasedScenario, type PhasedStage } from "./phased-stage.ts";
import { adopt, untilHeldAt, untilRolled } from "./roll.ts";

/** The policy that guards partitions. */
const POLICY = { folder: "infra/manifests/phased-policy" };

/** kubectl, which succeeds. */
async function kubectl({ namespace }: PhasedStage, args: readonly string[], input?: object): Promise<void> {
  const { code, text } = await runKubectl(["-n", namespace, ...args], input);
  assert.equal(code, 0, text);
}

phasedScenario(
  "under the policy, users release no pod by the partition, until they remove the claim",
  async (stage) => {
    await enforcePolicies(stage, POLICY);
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

async function untilReady(stage: PhasedStage, replicas: number): Promise<void> {
  const { timeline } = stage;
  await timeline.until(`${replicas} pods are ready`, () => {
    const { spec, status } = timeline.statefulSets.get("db") ?? {};
    return spec?.replicas === replicas && status?.readyReplicas === replicas && status.replicas === replicas;
  });
  await timeline.caughtUp();
  assert.equal((await stage.images()).length, replicas);
}

const released = async (stage: PhasedStage): Promise<string[]> =>
  (await stage.images()).filter((pod) => pod.endsWith("@app:2"));

phasedScenario(
  "a template and more replicas in one write, under the policy, and replicas by a write in the middle",
  async (stage) => {
    await enforcePolicies(stage, POLICY);
    await stage.createSet({ policy: "Parallel" });
    await adopt(stage);
    await untilKept(stage);
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
  },
);

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
