/**
 * Whatever binds pods to nodes, and however many nodes may be active: every drain that begins ends, and what is not
 * begun is held by name.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { least, runs } from "../../runs.ts";
import { PinnedWorld, type Shape } from "./pinned-world.ts";

const pins = fc.constantFrom("zone", "zone", "node", "apart", "free");
const shapes: fc.Arbitrary<Shape> = fc.record({
  zones: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 2, maxLength: 3 }),
  pods: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 2, maxLength: 2 }),
  pins: fc.array(pins, { minLength: 2, maxLength: 2 }) as fc.Arbitrary<Shape["pins"]>,
  maxUnavailable: fc.integer({ min: 0, max: 3 }),
  maxConcurrent: fc.integer({ min: 1, max: 7 }),
  zonesInOrder: fc.boolean(),
});

interface End {
  readonly world: PinnedWorld;
  readonly skips: ReadonlyMap<string, string>;
}

/** Plays until nothing has changed for many rounds. */
function play(shape: Shape, seed: readonly number[]): End {
  let at = 0;
  const world = new PinnedWorld(shape, (below) => (seed[at++ % seed.length] ?? 0) % below);
  let skips: ReadonlyMap<string, string> = new Map();
  for (let still = 0, round = 0; still < 40 && round < 3000; round++) {
    const before = JSON.stringify(world.policy.status);
    skips = world.pass();
    still = world.step() || before !== JSON.stringify(world.policy.status) ? 0 : still + 1;
  }
  return { world, skips };
}

const seeds = fc.array(fc.nat(1000), { minLength: 17, maxLength: 17 });
const reached = { waits: 0, captives: 0, reboots: 0, neverEnding: 0, forced: 0 };

describe("pods that are bound to zones and nodes", () => {
  it("never hold a drain for good: at the end no node is active, none is cordoned, and every node is updated or held for good, by name", () =>
    fc.assert(
      fc.property(shapes, seeds, (shape, seed) => {
        const { world, skips } = play(shape, seed);
        for (const what of ["waits", "captives", "reboots"] as const) reached[what] += world.reached[what];
        assert.deepEqual(world.policy.status.active, []);
        assert.deepEqual(
          world.members.filter((member) => member.node === undefined),
          [],
        );
        for (const { name, shadow, cordonedBy } of world.nodes) {
          assert.equal(cordonedBy, undefined, name);
          const isUpdated = shadow?.status?.current_version === "1.1.0";
          const why = skips.get(name);
          assert.ok(isUpdated || why === "DrainWouldNotEnd", `${name}: ${why}`);
          if (why === "DrainWouldNotEnd") reached.neverEnding++;
        }
      }),
      { numRuns: runs(150) },
    ));

  it("hold no node for good whose policy lets the reboot end its drain: the pods of one that is alone come back to it", () =>
    fc.assert(
      fc.property(shapes, seeds, (shape, seed) => {
        const { world } = play({ ...shape, forced: true }, seed);
        reached.forced += world.reached.forced;
        assert.deepEqual(world.policy.status.active, []);
        assert.deepEqual(
          world.members.filter((member) => member.node === undefined),
          [],
        );
        for (const { name, shadow, cordonedBy } of world.nodes)
          assert.deepEqual([cordonedBy, shadow?.status?.current_version], [undefined, "1.1.0"], name);
      }),
      { numRuns: runs(150) },
    ));

  it("and these worlds reach what they claim", () => {
    for (const what of ["waits", "captives", "reboots", "neverEnding", "forced"] as const)
      assert.ok(reached[what] >= least(5, 150), `${what}: ${reached[what]}`);
  });
});
