/** Pods that cannot come up at the revision that pods below the partition get: only the new template cures them. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { rolling } from "./builders.ts";
import { held, passed, released, table } from "./table.ts";
import { tick } from "./world-actor.ts";
import { createWorld, happen, numberOf, runKubelets, setOf, sync, type World } from "./world.ts";

type Crashes = (revision: number, index: number) => boolean;

/** Until only waiting is left. */
function tickAll(world: World): void {
  for (let step = 0; step < 10; step++) {
    const decision = tick(world);
    if (decision.action === "report" && (decision.dueAt ?? Infinity) > world.cluster.now()) return;
  }
}

/** Ten minutes, with pods that do not come up. */
function play(world: World, crashes: Crashes, rounds = 60): void {
  for (let round = 0; round < rounds; round++) {
    tickAll(world);
    sync(world);
    runKubelets(world);
    for (const [index, pod] of setOf(world).pods)
      if (crashes(numberOf(pod), index)) world.cluster.ail(pod.metadata.name, "crashing");
    sync(world);
    tickAll(world);
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

table("a step above all pods", [
  [
    "does not wait for the pod that it releases, if that cannot come up",
    held("ooO", passed(3)),
    "release db-2 by partition 2",
  ],
  [
    "waits for one below a pod that serves: to release that one would take a second pod",
    held("oOo", passed(3)),
    `Rolling WaitForAllPodsToBeAvailable@3 0/0`,
  ],
  [
    "waits while another pod than that is not ready",
    held("o!oO", passed(3)),
    `Rolling WaitForAllPodsToBeAvailable@3 0/0`,
  ],
  [
    "replaces a released pod that cannot come up, as the StatefulSet controller may wait for it",
    released(2, "ooO", rolling(2)),
    "replace db-2",
  ],
]);
