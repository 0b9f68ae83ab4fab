import assert from "node:assert/strict";
import { it } from "node:test";
import { applySet, createRollout, definition, setPhasedStage } from "./stage.ts";
import { partitionOf, play, reasons } from "./play.ts";

for (const [policy, replicas] of [
  ["OrderedReady", 3],
  ["Parallel", 5],
] as const)
  it(`a rollout of ${replicas} pods, ${policy}: each pod waits for two checks, and the partition guards the StatefulSet afterwards`, () =>
    play({ policy, replicas }, async (stage) => {
      await stage.tick();
      await stage.time.advance(1000);
      await stage.tick();
      assert.equal(partitionOf(stage), replicas);
      assert.equal(stage.rollout().status.phase, "Updated");
      await applySet(stage, "x:2", { policy, replicas });
      let before: number = replicas;
      for (let i = 0; i < 80 * replicas && stage.pods().some((pod) => pod.endsWith("x:1")); i++) {
        const asked = stage.asked.length;
        await stage.tickFor(1);
        const partition = partitionOf(stage) ?? 0;
        assert.ok(partition >= before - 1, "one pod at a time");
        if (partition < before)
          assert.ok(stage.asked.length - asked <= 2 && stage.asked.length >= 2 * (replicas - partition));
        before = partition;
      }
      await stage.tickFor(60);
      assert.equal(partitionOf(stage), replicas);
      assert.equal(stage.rollout().status.phase, "Updated");
      assert.equal(stage.asked.length, 2 * replicas);
      assert.deepEqual(reasons(stage), ["SuccessWhenUnset", "RolloutStarted", "RolloutCompleted"]);
    }));

it("a settled tick costs two lists for any number of PhasedRollouts, and no write", async () => {
  const stage = await setPhasedStage();
  try {
    for (let i = 0; i < 20; i++) {
      await applySet(stage, "x:1", { name: `db-${i}`, replicas: 1, policy: "Parallel" });
      createRollout(stage, { name: `guard-${i}`, spec: { targetRef: `db-${i}` } });
    }
    await stage.time.advance(10_000);
    await stage.tickFor(20);
    stage.calls.length = 0;
    const at = String(stage.emulator.store.version());
    const targets = Array.from({ length: 20 }, (_, i) => `default/db-${i}`).toSorted();
    // What is watched from, and nothing of what was read: a run keeps it until the next tick.
    const lists = [{ namespace: "default", rolloutsAt: at, targetsAt: at, targets }];
    assert.deepEqual(await stage.tick(), { acted: false, failed: false, lists });
    assert.deepEqual(stage.calls, [
      "GET sts.plus/v1alpha1/phasedrollouts collection",
      "GET apps/v1/statefulsets collection",
    ]);
  } finally {
    await stage.close();
  }
});

it("without PhasedRollouts a tick costs one list; without their definition one call a minute, and one log line", async () => {
  const [empty, missing] = [await setPhasedStage(), await setPhasedStage({ crd: undefined })];
  try {
    await empty.tick();
    assert.equal(empty.calls.length, 1);
    for (let i = 0; i < 5; i++) assert.deepEqual(await missing.tick(), { acted: false, failed: false });
    assert.equal(missing.calls.length, 1);
    await missing.time.advance(61_000);
    await missing.tick();
    assert.equal(missing.calls.length, 2);
    assert.equal(missing.logged.length, 1);
    assert.match(missing.logged[0] ?? "", /phasedrollouts\.sts\.plus is not installed/);
  } finally {
    await empty.close();
    await missing.close();
  }
});

it("a namespace that cannot be listed does not hold up the PhasedRollouts of others", async (t) => {
  const stage = await setPhasedStage();
  t.after(() => stage.close());
  await applySet(stage, "x:1");
  createRollout(stage, {});
  const resource = "phasedrollouts.sts.plus";
  stage.emulator.faults.inject({ verb: "list", resource, namespace: "gone", effect: { kind: "forbidden" } });
  const { acted, failed, lists } = await stage.tick({ namespaces: ["gone", "default"] });
  assert.deepEqual([acted, failed, lists?.map(({ namespace }) => namespace)], [true, true, ["default"]]);
  assert.deepEqual(await stage.tick({ namespaces: ["gone"] }), { acted: false, failed: true });
});

for (const policy of ["OrderedReady", "Parallel"] as const)
  it(`a revert in the middle brings the pods back at once, a broken one included (${policy})`, () =>
    play({ policy }, async (stage) => {
      await stage.tickFor(10);
      await applySet(stage, "x:2", { policy, template: { "sim/crash": "true" } });
      while (partitionOf(stage) !== 2) await stage.tickFor(1);
      await stage.tickFor(60);
      assert.equal(stage.rollout().status.rollingPodStatus?.status, "WaitForAllPodsToBeAvailable");
      await applySet(stage, "x:1", { policy });
      await stage.tickFor(30);
      assert.deepEqual(stage.pods(), ["db-0@x:1", "db-1@x:1", "db-2@x:1"]);
      assert.equal(partitionOf(stage), 3);
      assert.equal(stage.rollout().status.phase, "Updated");
      assert.equal(reasons(stage).at(-1), "RolledBack");
      if (policy === "OrderedReady") assert.ok(reasons(stage).includes("BrokenPodReplaced"));
    }));

it("a budget that denies the next pod holds it, is asked each tick, and no line of its log says so each time", () =>
  play({}, async (stage) => {
    await stage.tickFor(10);
    await applySet(stage, "x:2");
    const asked: string[] = [];
    const zone = { kind: "StatefulSet", namespace: "default", name: "db", uid: "1" } as const;
    await stage.tick({
      mayDisrupt: async (pod) => {
        asked.push(pod.name);
        return { action: "hold", reason: "BudgetSpent", message: `${pod.name} stays: spent`, objects: [zone] };
      },
    });
    await stage.tickFor(60);
    assert.equal(partitionOf(stage), 3);
    assert.ok(asked.length > 1 && new Set(asked).size === 1 && asked[0] === "db-2");
    const told = stage.logged.filter((line) => line.includes("stays: spent"));
    assert.ok(told.length > 0 && told.every((line) => line.startsWith("debug ")), told[0]);
    let released = 0;
    await stage.tick({ mayDisrupt: async () => ({ action: "grant", release: async () => void released++ }) });
    await stage.tickFor(20);
    assert.equal(partitionOf(stage), 2);
    assert.equal(released, 0);
  }));

it("an error of one PhasedRollout is its own: the others go on, and the tick fails", () =>
  play({}, async (stage) => {
    await applySet(stage, "x:1", { name: "db-2", policy: "Parallel" });
    createRollout(stage, { name: "second", spec: { targetRef: "db-2" } });
    const { cluster } = stage.connect();
    const broken = {
      ...cluster,
      patch: (...[resource, patch, call]: Parameters<typeof cluster.patch>) =>
        patch.name === "guard" ? Promise.reject(new Error("no")) : cluster.patch(resource, patch, call),
    };
    await stage.tick({ cluster: broken });
    const result = await stage.tick({ cluster: broken });
    assert.equal(result.failed, true);
    assert.ok(stage.rollout("second").metadata.finalizers?.includes("sts.plus/finalizer"));
    assert.ok(stage.logged.some((line) => line.startsWith("error the PhasedRollout could not be reconciled")));
  }));

it("a definition that drops fields of the status is pointed out, and nothing is released by it", async () => {
  const crd = definition() as unknown as Definition;
  delete crd.spec.versions[0]?.schema.openAPIV3Schema.properties.status.properties["targetUID"];
  const stage = await setPhasedStage({ crd: crd as unknown as ReturnType<typeof definition> });
  try {
    await applySet(stage, "x:1");
    await stage.time.advance(10_000);
    createRollout(stage);
    await stage.tickFor(30);
    assert.ok(stage.logged.some((line) => line.includes("drops fields of the status")));
    assert.equal(partitionOf(stage), 3);
  } finally {
    await stage.close();
  }
});

interface Definition {
  spec: {
    versions: { schema: { openAPIV3Schema: { properties: { status: { properties: Record<string, unknown> } } } } }[];
  };
}
