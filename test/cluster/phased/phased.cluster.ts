/** Phased rollouts under the rights of the manifests, with the real StatefulSet controller (§16). */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { deletions } from "../stage/invariants.ts";
import { runKubectl } from "../stage/kubectl.ts";
import { createManifest, deleteManifest, renderManifests } from "../stage/manifests.ts";
import { FAST, isUpdated, phasedScenario, type PhasedStage } from "./phased-stage.ts";
import { createRandom, SEED } from "../stage/random.ts";

/** Adopts `db`: from here on the partition guards it. */
async function adopt({ createRollout, until, start }: PhasedStage): Promise<ReturnType<PhasedStage["start"]>> {
  await createRollout();
  const reconciler = start(FAST);
  await until("adopted", isUpdated);
  return reconciler;
}

const deletedPods = ({ timeline }: PhasedStage): string[] => deletions(timeline.entries).map(({ pod }) => pod);
const ofRevision = (rollout: { status?: { updateRevision?: string } }, before: string | undefined): boolean =>
  rollout.status?.updateRevision !== before;

async function untilRolled(stage: PhasedStage, image: string, replicas: number): Promise<void> {
  const isDone = (): boolean => {
    const { spec, status, metadata } = stage.timeline.statefulSets.get("db") ?? {};
    const counts = [status?.updatedReplicas, status?.readyReplicas, spec?.updateStrategy?.rollingUpdate?.partition];
    return (
      status?.observedGeneration === metadata?.generation &&
      status?.currentRevision === status?.updateRevision &&
      spec?.template.spec?.containers[0]?.image === image &&
      counts.every((count) => count === replicas)
    );
  };
  await stage.timeline.until(`all pods at ${image}, and guarded`, isDone, 240_000);
  await stage.until("updated", isUpdated);
}

for (const policy of ["OrderedReady", "Parallel"] as const)
  for (const [replicas, maxUnavailable] of [
    [3, 1],
    [5, 3],
  ] as const)
    phasedScenario(`${replicas} pods, ${policy}: each is released by at least two checks of its own, in order, once`, async (stage) => {
      await stage.createSet({ policy, replicas, maxUnavailable });
      const reconciler = await adopt(stage);
      assert.equal(stage.partition(), replicas);
      await stage.roll("app:2");
      await untilRolled(stage, "app:2", replicas);
      assert.deepEqual(
        deletedPods(stage),
        Array.from({ length: replicas }, (_, i) => `db-${replicas - 1 - i}`),
      );
      // A query whose answer could not be written is asked again.
      assert.ok(stage.prometheus.asked >= 2 * replicas, `${stage.prometheus.asked} queries`);
      assert.equal(await reconciler.end(), 0);
      for (const reason of ["RolloutStarted", "RolloutCompleted"]) assert.equal((await stage.events(reason)).length, 1, reason);
    });

phasedScenario("failing checks hold pod 1, and the rollout goes on when the query clears", async (stage) => {
  await stage.createSet();
  await adopt(stage);
  await stage.roll("app:2");
  await stage.until("the second step", ({ status }) => status?.rollingPodStatus?.partition === 2);
  stage.prometheus.isFiring = true;
  const { asked } = stage.prometheus;
  await stage.until("failed checks", ({ status }) => status?.rollingPodStatus?.status === "WaitForChecks");
  while (stage.prometheus.asked < asked + 5) await sleep(100);
  assert.deepEqual(await stage.images(), ["db-0@app:1", "db-1@app:1", "db-2@app:2"]);
  stage.prometheus.isFiring = false;
  await untilRolled(stage, "app:2", 3);
});

/** kubectl, which succeeds. */
async function kubectl({ namespace }: PhasedStage, args: readonly string[], input?: object): Promise<void> {
  const { code, text } = await runKubectl(["-n", namespace, ...args], input);
  assert.equal(code, 0, text);
}

phasedScenario("S21 under the policy, users release no pod by the partition, until they remove the claim", async (stage) => {
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
    assert.equal(stage.partition(), 3);
    assert.deepEqual(await stage.images(), ["db-0@app:1", "db-1@app:1", "db-2@app:1"]);
    await kubectl(stage, ["annotate", "statefulset", "db", "sts.plus/phasedRollout-"]);
    await kubectl(stage, ["patch", "statefulset", "db", "-p", JSON.stringify({ spec: PARTITION_0 })]);
    await stage.timeline.until("all pods at app:2", () => stage.timeline.statefulSets.get("db")?.status?.updatedReplicas === 3);
    stage.prometheus.isFiring = false;
    stage.start(FAST);
    await stage.roll("app:3");
    await untilRolled(stage, "app:3", 3);
  } finally {
    for (const manifest of policy) await deleteManifest(stage.admin, manifest);
  }
});

const PARTITION_0 = { updateStrategy: { rollingUpdate: { partition: 0 } } };

/** The API server takes a policy into account a moment after it has stored it. */
async function untilKept({ call, namespace }: PhasedStage): Promise<void> {
  const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets/db?dryRun=All`;
  const last = Date.now() + 60_000;
  for (;;) {
    const { spec } = await call<{ spec: typeof PARTITION_0 }>("PATCH", path, { spec: PARTITION_0 });
    if (spec.updateStrategy.rollingUpdate.partition === 3) return;
    assert.ok(Date.now() < last, "the policy does nothing");
    await sleep(100);
  }
}

for (const policy of ["OrderedReady", "Parallel"] as const)
  phasedScenario(`a revert in the middle brings the pods back at once, without checks (${policy})`, async (stage) => {
    await stage.createSet({ policy });
    await adopt(stage);
    await stage.roll("app:2", { "sim/crash": "true" });
    await stage.until(
      "waits for the broken pod",
      ({ status }) => status?.rollingPodStatus?.status === "WaitForAllPodsToBeAvailable" && status.rollingPodStatus.partition === 2,
    );
    const { asked } = stage.prometheus;
    await stage.roll("app:1");
    await untilRolled(stage, "app:1", 3);
    assert.equal(stage.prometheus.asked, asked);
    assert.deepEqual(await stage.images(), ["db-0@app:1", "db-1@app:1", "db-2@app:1"]);
    assert.deepEqual(deletedPods(stage), ["db-2", "db-2"]);
  });

phasedScenario("scaled up and down in the middle, the rollout completes with the replicas that there are", async (stage) => {
  await stage.createSet();
  await adopt(stage);
  await stage.roll("app:2");
  await stage.until("the second step", ({ status }) => status?.rollingPodStatus?.partition === 2);
  await stage.patchZone("db", { spec: { replicas: 5 } });
  await stage.until("the third step", ({ status }) => (status?.rollingPodStatus?.partition ?? 0) <= 1);
  await stage.patchZone("db", { spec: { replicas: 2 } });
  await untilRolled(stage, "app:2", 2);
  assert.deepEqual(await stage.images(), ["db-0@app:2", "db-1@app:2"]);
});

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

phasedScenario("of two PhasedRollouts the second waits, and takes over when the first is deleted", async (stage) => {
  await stage.createSet();
  await adopt(stage);
  await stage.createRollout("other");
  await stage.until("cannot manage", ({ status }) => status?.phase === "ErrorCannotManage", "other");
  const rollouts = `/apis/sts.plus/v1alpha1/namespaces/${stage.namespace}/phasedrollouts`;
  await stage.remove(`${rollouts}/guard`);
  await stage.until("took over", isUpdated, "other");
  assert.equal(stage.partition(), 3);
  await stage.remove(`${rollouts}/other`);
  await stage.timeline.until("given back", () => stage.partition() === 0);
});

/** What docs/phased-rollouts.md tells a pipeline to do after its apply. */
async function waitUpdated({ namespace }: PhasedStage, build: string, seconds = 120): Promise<number> {
  const patch = JSON.stringify({ spec: { checkpoint: build } });
  const patched = await runKubectl(["-n", namespace, "patch", "phasedrollout", "guard", "--type=merge", "-p", patch]);
  assert.equal(patched.code, 0, patched.text);
  return (await runKubectl(["-n", namespace, "wait", "--for=condition=Updated", `--timeout=${seconds}s`, "phasedrollout/guard"])).code;
}

phasedScenario("kubectl wait ends with the template that was applied before it, and not while no reconciler runs", async (stage) => {
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
});

const KILLS = 20;

phasedScenario("a reconciler killed twenty times at random moments releases each pod once, after its checks", async (stage) => {
  stage.diagnostic(`SEED=${SEED}`);
  await stage.createSet({ replicas: 5, policy: "Parallel" });
  const first = await adopt(stage);
  await first.kill();
  const before = (await stage.readRollout()).status?.updateRevision;
  await stage.roll("app:2");
  const random = createRandom("phased");
  for (let kill = 0; kill < KILLS; kill++) {
    const reconciler = stage.start(FAST);
    await reconciler.untilOutput(/holding the lease/);
    await sleep(random.between(0, 500));
    await reconciler.kill();
  }
  stage.start(FAST);
  await untilRolled(stage, "app:2", 5);
  assert.deepEqual(deletedPods(stage), ["db-4", "db-3", "db-2", "db-1", "db-0"]);
  assert.ok(stage.prometheus.asked >= 10, `${stage.prometheus.asked} checks`);
  assert.ok(ofRevision(await stage.readRollout(), before));
});

const RUN = dirname(process.env["KUBECONFIG"] ?? "");
if (existsSync(join(RUN, "kube-apiserver.pid")))
  phasedScenario("after the API server was killed and restarted, the rollout completes", async (stage) => {
    await stage.createSet();
    const reconciler = await adopt(stage);
    await stage.roll("app:2");
    await stage.until("the second step", ({ status }) => status?.rollingPodStatus?.partition === 2);
    await promisify(execFile)(join(import.meta.dirname, "../../plane/restart"), ["kube-apiserver", "2"], { env: { ...process.env, RUN } });
    await untilRolled(stage, "app:2", 3);
    assert.deepEqual(deletedPods(stage), ["db-2", "db-1", "db-0"]);
    assert.equal(await reconciler.end(), 0);
  });
