/** A StatefulSet that is scaled during its phased rollout, on the embedded cluster, without any admission (§16.15). */
import assert from "node:assert/strict";
import { it } from "node:test";
import { statefulSets } from "../../../../infra/kubernetes/resources.ts";
import { HELD } from "../../../../reconciler/phased/target.ts";
import { partitionOf, play } from "./play.ts";
import { applySet, FIRING, type PhasedStage, QUIET } from "./stage.ts";

/** By the subresource, as `kubectl scale` and autoscalers do. */
async function scale(stage: PhasedStage, replicas: number): Promise<void> {
  const { cluster } = stage.connect();
  await cluster.patch(statefulSets, {
    namespace: "default",
    name: "db",
    type: "merge",
    subresource: "scale",
    body: { spec: { replicas } },
  });
}

const partition = (stage: PhasedStage): number | undefined => stage.set().spec.updateStrategy.rollingUpdate?.partition;
const updated = (stage: PhasedStage): string[] => stage.pods().filter((pod) => pod.endsWith("x:2"));

async function toFirstStep(stage: PhasedStage): Promise<void> {
  await stage.tickFor(5);
  await applySet(stage, "x:2");
  await stage.tickFor(7);
  assert.equal(stage.rollout().status.rollingPodStatus?.partition, 3);
  assert.equal(partition(stage), HELD);
}

for (const policy of ["OrderedReady", "Parallel"] as const) {
  it(`before the first success, no scale-out adds a pod of the new template, and none comes at once (${policy})`, () =>
    play({ policy }, async (stage) => {
      stage.answer = FIRING;
      await toFirstStep(stage);
      for (const replicas of [6, 4, 6, 2, 5]) {
        await scale(stage, replicas);
        await stage.time.advance(5000);
        assert.deepEqual(updated(stage), []);
        await stage.tickFor(20);
        assert.deepEqual(updated(stage), []);
      }
      assert.equal(stage.pods().length, 5);
      assert.equal(stage.rollout().status.rollingPodStatus?.partition, 5);
      stage.answer = QUIET;
      for (let i = 0; i < 200 && updated(stage).length < 5; i++) await stage.tickFor(1);
      await stage.tickFor(20);
      assert.equal(stage.rollout().status.phase, "Updated");
      assert.equal(partition(stage), 5);
    }));

  it(`after the first release, pods that a scale-out added return, and have steps of their own (${policy})`, () =>
    play({ policy }, async (stage) => {
      await toFirstStep(stage);
      for (let i = 0; i < 200 && partitionOf(stage) !== 2; i++) await stage.tickFor(1);
      stage.answer = FIRING;
      await stage.tickFor(10);
      await scale(stage, 6);
      await stage.time.advance(5000);
      assert.ok(updated(stage).length > 1);
      await stage.tickFor(60);
      assert.deepEqual(updated(stage), ["db-2@x:2"]);
      assert.equal(stage.pods().length, 6);
      assert.equal(partition(stage), HELD);
      // Back and forth again: nothing is released by it.
      for (const replicas of [3, 6, 4, 6]) {
        await scale(stage, replicas);
        await stage.tickFor(30);
        assert.deepEqual(updated(stage), ["db-2@x:2"]);
      }
      stage.answer = QUIET;
      const order: number[] = [];
      for (let i = 0; i < 400 && stage.rollout().status.phase !== "Updated"; i++) {
        await stage.tickFor(1);
        if (order.at(-1) !== partitionOf(stage)) order.push(partitionOf(stage));
      }
      // Pod 2 is passed over: it had its step.
      assert.deepEqual(order.slice(0, 5), [6, 5, 4, 3, 1]);
    }));
}

it("replicas that were judged may come and go: the rollout goes on", () =>
  play({}, async (stage) => {
    await toFirstStep(stage);
    for (let i = 0; i < 200 && partitionOf(stage) !== 1; i++) await stage.tickFor(1);
    for (const replicas of [2, 3, 2, 3]) {
      await scale(stage, replicas);
      await stage.tickFor(5);
      assert.equal(partition(stage), 1);
    }
    for (let i = 0; i < 200 && stage.rollout().status.phase !== "Updated"; i++) await stage.tickFor(1);
    assert.equal(updated(stage).length, 3);
  }));
