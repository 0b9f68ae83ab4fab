/** A webhook or a policy that changes what is written to the StatefulSet of a PhasedRollout. */
import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import type { Cluster, Patch } from "../../../../infra/kubernetes/cluster.ts";
import { applySet, createRollout, type PhasedStage, setPhasedStage } from "./stage.ts";

/** A set with this partition, its PhasedRollout, and a connection whose writes of the set have this effect instead. */
async function open(
  t: TestContext,
  alter: (body: Body) => Body,
  partition = 0,
): Promise<{ stage: PhasedStage; cluster: Cluster; calls: string[] }> {
  const stage = await setPhasedStage();
  t.after(() => stage.close());
  await applySet(stage, "x:1", { partition });
  await stage.time.advance(10_000);
  createRollout(stage);
  const { cluster, calls } = stage.connect();
  const pin = (patch: Patch): Patch => (patch.name === "db" ? { ...patch, body: alter(patch.body as Body) } : patch);
  return {
    stage,
    calls,
    cluster: { ...cluster, patch: (resource, patch, call) => cluster.patch(resource, pin(patch), call) },
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
    patch: (resource, patch, call) => {
      if (patch.name === "db") writers.push(patch.fieldManager);
      return cluster.patch(resource, patch, call);
    },
  };
  await stage.tick({ cluster: noting });
  assert.deepEqual(writers, ["zonewise-reconciler", "zonewise-reconciler"]);
});

for (const [what, alter] of [
  ["a partition that something pins", pinTo(0)],
  ["a claim that something removes", (body) => ({ ...body, metadata: { ...body.metadata, annotations: {} } })],
] as const satisfies readonly (readonly [string, (body: Body) => Body])[])
  it(`${what} fails the tick after ten steps, which says so, and the next tick does not follow at once`, async (t) => {
    const { stage, cluster, calls } = await open(t, alter);
    const { lists, ...result } = await stage.tick({ cluster });
    assert.deepEqual([result, lists?.length], [{ acted: false, failed: true }, 1]);
    assert.equal(calls.filter((call) => call.startsWith("PATCH")).length, 10);
    assert.match(stage.logged.at(-1) ?? "", /^error the PhasedRollout comes to no end/);
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
    patch: (resource, patch, call) => {
      const body = patch.body as Body;
      const isLowered = isPinned && patch.name === "db" && body.spec !== undefined;
      if (isLowered) isPinned = false;
      return cluster.patch(resource, isLowered ? { ...patch, body: pinTo(0)(body) } : patch, call);
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

it("a tick that is stopped in the middle of a visit is no failure", async (t) => {
  const { stage, cluster } = await open(t, (body) => body);
  const stop = new AbortController();
  const stopping: Cluster = {
    ...cluster,
    patch: (resource, patch, call) => {
      stop.abort();
      return cluster.patch(resource, patch, call);
    },
  };
  const { acted, failed } = await stage.tick({ cluster: stopping, stop: stop.signal });
  assert.deepEqual([acted, failed], [true, false]);
  assert.ok(stage.logged.every((line) => !line.startsWith("error")));
});
