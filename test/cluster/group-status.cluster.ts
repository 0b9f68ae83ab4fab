/** What kubectl shows a person or a pipeline of a group, on the real control plane. */
import assert from "node:assert/strict";
import { before } from "node:test";
import { connectAdmin } from "./client.ts";
import { runKubectl } from "./kubectl.ts";
import { defineRolloutGroups, readRow, waitFor } from "./rollout-groups.ts";
import { scenario, type Stage } from "./stage.ts";
import { isDone } from "./zones.ts";

const ZONES = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name, replicas: 2 }));

before(async () => {
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  await defineRolloutGroups(admin);
  admin.close();
});

/** What a pipeline does after its apply. */
async function ask({ namespace }: Stage, checkpoint: string): Promise<void> {
  const patch = JSON.stringify({ spec: { checkpoint } });
  const { code, text } = await runKubectl(["-n", namespace, "patch", "rolloutgroup", "cache", "--type=merge", "-p", patch]);
  assert.equal(code, 0, text);
}

scenario("kubectl wait ends with the rollout that was applied before it, each time, and not sooner", async (stage) => {
  await stage.create(ZONES);
  const reconciler = stage.start();
  await reconciler.untilOutput(/"settled":1/);
  assert.equal((await waitFor(stage.namespace, "Ready")).code, 0);
  for (const image of ["app:2", "app:3", "app:4"]) {
    await stage.setImage(image, ZONES);
    await ask(stage, image);
    const { code, text } = await waitFor(stage.namespace, "Ready");
    assert.equal(code, 0, text);
    const late = ZONES.filter(({ name }) => !isDone(stage.timeline.statefulSets.get(name), image));
    assert.deepEqual(late, [], `ready before ${image} was everywhere`);
  }
  assert.equal(await reconciler.end(), 0);
});

scenario("kubectl wait does not see that a group is ready while no reconciler runs", async (stage) => {
  await stage.create(ZONES);
  const first = stage.start();
  await first.untilOutput(/"settled":1/);
  assert.equal((await waitFor(stage.namespace, "Ready")).code, 0);
  assert.equal(await first.end(), 0);
  await stage.setImage("app:2", ZONES);
  await ask(stage, "app:2");
  assert.equal((await waitFor(stage.namespace, "Ready", { seconds: 2 })).code, 1);
  const second = stage.start();
  assert.equal((await waitFor(stage.namespace, "Ready")).code, 0);
  assert.equal(await second.end(), 0);
});

scenario("the columns show where a rollout stands, what blocks it, and that it has stalled", async (stage) => {
  await stage.create(ZONES);
  const reconciler = stage.start({ RECONCILE_INTERVAL: "500ms" });
  await reconciler.untilOutput(/"settled":1/);
  assert.equal((await waitFor(stage.namespace, "Ready")).code, 0);
  const ready = await readRow(stage.namespace);
  assert.partialDeepStrictEqual(ready, { PHASE: "Ready", READY: "True", ZONES: "3/3", UPDATED: "6/6", "PODS-READY": "6/6", ZONE: "" });

  await runKubectl(["-n", stage.namespace, "patch", "rg", "cache", "--type=merge", "-p", '{"spec":{"progressDeadlineSeconds":3}}']);
  await stage.setImage("app:2", ZONES, { "sim/crash": "true" });
  assert.equal((await waitFor(stage.namespace, "Stalled")).code, 0);
  const stalled = await readRow(stage.namespace);
  assert.partialDeepStrictEqual(stalled, {
    PHASE: "Stalled",
    READY: "False",
    ZONES: "0/3",
    UPDATED: "1/6",
    "PODS-READY": "5/6",
    ZONE: "zone-a",
    "BLOCKED-BY": "MaxUnavailableReached",
  });
  assert.match(stalled["MESSAGE"] ?? "", /^no step since .*: zone-a: zone-a-0 CrashLoopBackOff; at most 1 may be unavailable/);
  assert.match(stalled["LAST-STEP"] ?? "", /^\d+s$/);

  await stage.setImage("app:3", ZONES, { "sim/crash": "false" });
  await ask(stage, "app:3");
  assert.equal((await waitFor(stage.namespace, "Ready")).code, 0);
  assert.equal(await reconciler.end(), 0);
});

scenario("a RolloutGroup ends with its group", async (stage) => {
  await stage.create(ZONES);
  const reconciler = stage.start();
  await reconciler.untilOutput(/"settled":1/);
  assert.equal((await waitFor(stage.namespace, "Ready")).code, 0);
  for (const { name } of ZONES) await stage.call("DELETE", `/apis/apps/v1/namespaces/${stage.namespace}/statefulsets/${name}`);
  const gone = await runKubectl(["-n", stage.namespace, "wait", "--for=delete", "--timeout=30s", "rolloutgroup/cache"]);
  assert.equal(gone.code, 0, gone.text);
  assert.equal(await reconciler.end(), 0);
});
