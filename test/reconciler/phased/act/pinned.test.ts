/** A webhook or a policy that changes what is written to the StatefulSet of a PhasedRollout. */
import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import type { Cluster, Patch } from "../../../../infra/kubernetes/cluster.ts";
import { applySet, createRollout, PHASED, type PhasedStage, setPhasedStage } from "./stage.ts";

/** A set with this partition, its PhasedRollout, and a connection whose writes of the set have this effect instead. */
async function open(
  t: TestContext,
  alter: (body: Body) => Body,
  partition = 0,
): Promise<{ stage: PhasedStage; cluster: Cluster }> {
  const stage = await setPhasedStage();
  t.after(() => stage.close());
  await applySet(stage, "x:1", { partition });
  await stage.time.advance(10_000);
  createRollout(stage);
  const { cluster } = stage.connect();
  const pin = (patch: Patch): Patch => (patch.name === "db" ? { ...patch, body: alter(patch.body as Body) } : patch);
  return {
    stage,
    cluster: {
      ...cluster,
      patch: (resource, patch, call) => cluster.patch(resource, pin(patch), call),
      change: (resource, patch, call) => cluster.change(resource, pin(patch), call),
    },
  };
}

interface Body {
  readonly metadata: { readonly annotations?: object };
  readonly spec?: object;
}

const pinTo = (partition: number) => (body: Body) => ({
  ...body,
  ...(body.spec && { spec: { updateStrategy: { rollingUpdate: { partition } } } }),
});

it("each write to the StatefulSet names the reconciler, by which admission knows it", async (t) => {
  const { stage } = await open(t, (body) => body);
  const { cluster } = stage.connect();
  const writers: (string | undefined)[] = [];
  const noting: Cluster = {
    ...cluster,
    change: (resource, patch, call) => {
      if (patch.name === "db") writers.push(patch.fieldManager);
      return cluster.change(resource, patch, call);
    },
  };
  await stage.tick({ cluster: noting });
  assert.deepEqual(writers, ["zonewise-reconciler", "zonewise-reconciler"]);
});

it("a partition that something pins is written once a tick, which fails and says so, and the next tick does not follow at once", async (t) => {
  const { stage, cluster } = await open(t, pinTo(0));
  await stage.tick({ cluster });
  for (let i = 0; i < 3; i++) {
    await stage.time.advance(1000);
    const written = stage.emulator.store.get("statefulsets.apps", "default", "db")?.metadata.resourceVersion;
    const { lists, ...result } = await stage.tick({ cluster });
    assert.deepEqual([result, lists?.length], [{ acted: false, failed: true }, 1]);
    assert.equal(stage.emulator.store.get("statefulsets.apps", "default", "db")?.metadata.resourceVersion, written);
  }
  assert.ok(
    stage.logged.some((line) => /accepted, but db has partition 0 instead of 3: something pins it/.test(line)),
    stage.logged.join("\n"),
  );
});

it("a claim that something removes is written once a tick, which fails and says so", async (t) => {
  const { stage, cluster } = await open(t, (body) => ({ ...body, metadata: { ...body.metadata, annotations: {} } }));
  const { lists, ...result } = await stage.tick({ cluster });
  assert.deepEqual([result, lists?.length], [{ acted: false, failed: true }, 1]);
  assert.match(stage.logged.join("\n"), /accepted, but db is claimed by nobody: something pins its annotations/);
  assert.equal(stage.rollout().status, undefined);
});

it("a partition that is stored lower than it was sent is decided about again, as pods may have been released", async (t) => {
  const { stage } = await open(t, (body) => body, 3);
  await stage.tickFor(10);
  await applySet(stage, "x:2");
  while (stage.rollout().status.rollingPodStatus?.status !== "WaitForChecks") await stage.tickFor(1);
  const { cluster } = stage.connect();
  let isPinned = true;
  const lowering: Cluster = {
    ...cluster,
    change: (resource, patch, call) => {
      const body = patch.body as Body;
      const isLowered = isPinned && patch.name === "db" && body.spec !== undefined;
      if (isLowered) isPinned = false;
      return cluster.change(resource, isLowered ? { ...patch, body: pinTo(0)(body) } : patch, call);
    },
  };
  for (let i = 0; i < 400 && isPinned; i++) {
    await stage.tick({ cluster: lowering });
    await stage.time.advance(100);
  }
  assert.equal(isPinned, false);
  await stage.tickFor(20);
  assert.notEqual(stage.set().spec.updateStrategy.rollingUpdate?.partition, 0);
  assert.ok(stage.events.some(({ reason }) => reason === "PartitionRaised"));
});

it("a PhasedRollout whose every write is undone waits a moment before the next tick", async (t) => {
  const { stage, cluster } = await open(t, (body) => body);
  const undoing: Cluster = {
    ...cluster,
    patch: async (resource, patch, call) => {
      const version = await cluster.patch(resource, patch, call);
      const guard = stage.emulator.store.get(PHASED, "default", "guard");
      if (guard) stage.emulator.store.update(PHASED, { ...guard, metadata: { ...guard.metadata, finalizers: [] } });
      return version;
    },
  };
  const { acted, dueAt = Infinity } = await stage.tick({ cluster: undoing });
  assert.deepEqual([acted, dueAt <= stage.clock.now()], [false, true]);
});
