/** Pods that cannot come up at the revision that pods below the partition get: only the new template cures them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decidePhased } from "../../../reconciler/phased/decide-phased.ts";
import { HELD } from "../../../reconciler/phased/target.ts";
import { OLD, NEW, rolling, snapshot, type Scene, type SetTraits } from "./builders.ts";
import { ask, carryOut, observe, versionsOf } from "./world-actor.ts";
import { createWorld, happen, numberOf, runKubelets, setOf, sync, type World } from "./world.ts";

type Crashes = (revision: number, index: number) => boolean;

function tick(world: World): void {
  for (let step = 0; step < 10; step++) {
    const read = versionsOf(world);
    const first = decidePhased(observe(world));
    const decision = first.action === "check" ? decidePhased(observe(world, ask(world))) : first;
    carryOut(decision, world, read);
    if (decision.action === "report" && (decision.dueAt ?? Infinity) > world.cluster.now()) return;
  }
}

/** Ten minutes, with pods that do not come up. */
function play(world: World, crashes: Crashes, rounds = 60): void {
  for (let round = 0; round < rounds; round++) {
    tick(world);
    sync(world);
    runKubelets(world);
    for (const [index, pod] of setOf(world).pods)
      if (crashes(numberOf(pod), index)) world.cluster.ail(pod.metadata.name, "crashing");
    sync(world);
    tick(world);
    world.cluster.elapse(10_000);
  }
}

const endOf = (world: World) => [
  world.rollout.status?.phase,
  ...[...setOf(world).pods].map(([index, pod]) => `${index} r${numberOf(pod)} ${world.cluster.lifeOf(pod)}`),
];

for (const ordered of [true, false]) {
  const policy = ordered ? "OrderedReady" : "Parallel";
  it(`a template that mends a StatefulSet none of whose pods has ever come up reaches all of them (${policy})`, () => {
    const world = createWorld({ replicas: 3, ordered, guarded: true });
    for (const { metadata } of setOf(world).pods.values()) world.cluster.remove(metadata.name);
    world.cluster.runAll();
    const crashes: Crashes = (revision) => revision === 0;
    play(world, crashes, 5);
    happen("deploy", world, 0);
    play(world, crashes);
    assert.deepEqual(endOf(world), ["Updated", "0 r1 ready", "1 r1 ready", "2 r1 ready"]);
  });

  it(`a pod that a scale-out adds, and whose template does not come up any more, gets the new one in its step (${policy})`, () => {
    const world = createWorld({ replicas: 3, ordered, guarded: true });
    play(world, () => false, 5);
    happen("deploy", world, 0);
    play(world, () => false, 5);
    assert.deepEqual(endOf(world), ["Rolling", "0 r0 ready", "1 r0 ready", "2 r1 ready"]);
    for (let more = 0; more < 2; more++) happen("scaleUp", world, 0);
    play(world, (revision, index) => revision === 0 && index > 2, 90);
    assert.deepEqual(endOf(world), ["Updated", ...[0, 1, 2, 3, 4].map((index) => `${index} r1 ready`)]);
  });
}

describe("a step above all pods", () => {
  const passed = {
    consecutiveSuccessfulChecks: 3,
    lastAttemptTime: "2026-03-01T12:00:00Z",
    lastCheckTime: "2026-03-01T12:00:00Z",
  };
  const decide = (pods: string, set: SetTraits, more: Partial<Scene> = {}) => {
    const scene = {
      set: { current: OLD, update: NEW, partition: HELD, ...set },
      pods,
      status: rolling(3, passed),
      ...more,
    };
    const decision = decidePhased(snapshot(scene));
    return decision.action === "report"
      ? decision.status.rollingPodStatus?.status
      : JSON.stringify(decision).slice(0, 40);
  };

  it("does not wait for the pod that it releases, if that cannot come up", () =>
    assert.match(decide("ooO", { available: 2 }) ?? "", /releasePod","partition":2/));

  it("waits for one below a pod that serves: to release that one would take a second pod", () =>
    assert.equal(decide("oOo", { available: 2 }), "WaitForAllPodsToBeAvailable"));

  it("waits while another pod than that is not ready", () =>
    assert.equal(decide("o!oO", { available: 1 }), "WaitForAllPodsToBeAvailable"));

  it("replaces a released pod that cannot come up, as the StatefulSet controller may wait for it", () =>
    assert.match(decide("ooO", { available: 2, partition: 2 }, { status: rolling(2) }) ?? "", /replacePod/));
});
