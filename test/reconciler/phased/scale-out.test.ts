/**
 * Over random histories of scaling during a rollout: the StatefulSet controller gives the latest template to no more
 * pods than steps have passed (§16.15).
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { runs } from "../../runs.ts";
import { createWorld, happen, numberOf, setOf, type Happening, type World } from "./world.ts";
import { tick } from "./world-actor.ts";

/** Ticks as often as controllers act, or less often. Resolves with the number of pods that were released. */
function runOn(world: World, turns: number): number {
  let released = 0;
  for (let turn = 0; turn < turns; turn++) {
    if (tick(world).action === "releasePod") released++;
    for (const what of ["sync", "kubelets", "wait"] as const) happen(what, world, 0);
  }
  return released;
}

const SCALING = ["scaleUp", "scaleUp", "scaleDown", "applyMore", "sync", "kubelets", "tick", "tick"] as const;
const history = fc.record({
  replicas: fc.integer({ min: 1, max: 4 }),
  ordered: fc.boolean(),
  maxUnavailable: fc.integer({ min: 1, max: 3 }),
  /** Turns before the checks begin to fail. */
  quietFor: fc.nat(60),
  /** Together with the template, by one write. */
  deploy: fc.constantFrom<Happening>("deploy", "deployMore"),
  before: fc.array(fc.constantFrom(...SCALING), { maxLength: 6 }),
  during: fc.array(fc.constantFrom(...SCALING), { maxLength: 30 }),
});

const play = (world: World, steps: readonly (Happening | "tick")[]): void =>
  steps.forEach((what) => (what === "tick" ? tick(world) : happen(what, world, 0)));

function updated(world: World): number {
  const { pods, template } = setOf(world);
  return [...pods.values()].filter((pod) => numberOf(pod) === template).length;
}

/** Every step has passed, or the rollout is over. */
function isOver(world: World): boolean {
  const { partition, current, template } = setOf(world);
  return partition === 0 || current === template;
}

function adopted(traits: Parameters<typeof createWorld>[0]): World {
  const world = createWorld({ ...traits, guarded: true });
  runOn(world, 8);
  return world;
}

it("while no check has succeeded, no pod has the latest template, however it is scaled, and whoever ticks when", () => {
  fc.assert(
    fc.property(history, ({ before, during, deploy, ...traits }) => {
      const world = adopted(traits);
      world.prometheus = "firing";
      play(world, before);
      happen(deploy, world, 0);
      for (const step of during) {
        play(world, [step]);
        assert.equal(updated(world), 0);
      }
    }),
    { numRuns: runs(500) },
  );
});

/** As long as it takes, with checks that succeed. Resolves with the pods that were replaced. */
function finish(world: World): string[] {
  const replaced: string[] = [];
  for (const what of ["clear", "rollingUpdate"] as const) happen(what, world, 0);
  for (let turn = 0; turn < 60 * (setOf(world).replicas + 3); turn++) {
    const decision = tick(world);
    if (decision.action === "replacePod") replaced.push(decision.pod.name);
    if (decision.action === "report" && decision.status.phase === "Updated") return replaced;
    happen("advance", world, 0);
  }
  assert.fail(`never complete: ${JSON.stringify(setOf(world))} ${replaced.join()}`);
}

it("whatever happens to the StatefulSet besides: once that ends no pod is replaced twice, and the rollout completes", () => {
  const besides = fc.constantFrom(
    ...SCALING,
    "remake",
    "recreate",
    "deploy",
    "revert",
    "wipePartition",
    "replace",
    "advance",
    "advance",
  );
  fc.assert(
    fc.property(history, fc.array(besides, { maxLength: 12 }), ({ quietFor, during, deploy, ...traits }, steps) => {
      const world = createWorld(traits);
      runOn(world, 8);
      happen(deploy, world, 0);
      runOn(world, quietFor);
      play(world, [...steps, ...during]);
      const names = finish(world);
      assert.equal(new Set(names).size, names.length, names.join());
    }),
    { numRuns: runs(1000) },
  );
});

it("once the checks fail and the scaling ends, as many pods have the latest template as steps have passed, at most", () => {
  fc.assert(
    fc.property(history, ({ quietFor, during, deploy, ...traits }) => {
      const world = adopted(traits);
      happen(deploy, world, 0);
      const released = runOn(world, quietFor);
      if (isOver(world)) return;
      world.prometheus = "firing";
      // A success that is stored releases its pod.
      const late = runOn(world, 8);
      if (isOver(world)) return;
      play(world, during);
      const later = runOn(world, 60);
      assert.equal(later, 0);
      assert.ok(
        updated(world) <= released + late,
        `${updated(world)} pods, and ${released + late} steps: ${JSON.stringify(setOf(world))}`,
      );
    }),
    { numRuns: runs(1000) },
  );
});
