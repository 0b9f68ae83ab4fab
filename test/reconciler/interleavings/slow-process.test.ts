/**
 * A process that is suspended between two of its calls while all others continue: it must not act on what it read
 * before.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { either } from "../../runs.ts";
import { evictor, hesitator, reconciler } from "./actors.ts";
import { seededRandom } from "./random.ts";
import { createStepper, type Choose } from "./stepper.ts";
import { createWorld } from "./world.ts";

const SLOW = "slow function";

/**
 * The slow process makes so many calls, then waits until all others have ended. Recreated pods are ready only after
 * that.
 */
function stall(calls: number, seed: number): { readonly choose: Choose; readonly made: () => number } {
  const random = seededRandom(seed);
  let made = 0;
  const choose: Choose = (_, waiting) => {
    const own = waiting.findIndex(({ actor }) => actor === SLOW);
    if (own >= 0 && made < calls) {
      made++;
      return own;
    }
    const others = waiting.flatMap(({ actor, label }, i) => (actor === SLOW || label.endsWith("is ready") ? [] : [i]));
    return others.length > 0 ? (others[random(others.length)] ?? 0) : Math.max(0, own);
  };
  return { choose, made: () => made };
}

/** One play: its violations, and the number of calls that the slow process made before it had to wait. */
async function play(calls: number, seed: number, keepsStatus: boolean, checksVersions = true) {
  const stepper = createStepper();
  const rollout = { "rollout-max-unavailable": "2" };
  const world = createWorld({
    stepper,
    zones: 2,
    replicas: 2,
    spec: { maxUnavailable: 2 },
    revives: true,
    keepsStatus,
    checksVersions,
    rollout,
  });
  const stage = { stepper, world };
  const { choose, made } = stall(calls, seed);
  void evictor(stage, SLOW, ["ingester-zone-b-0"]);
  void evictor(stage, "function", ["ingester-zone-a-0"]);
  void reconciler(stage, "reconciler", 2);
  void hesitator(stage, "hesitator", "ingester-zone-a-1");
  await stepper.run(choose);
  return { world, made: made() };
}

async function playAll(keepsStatus: boolean, checksVersions = true) {
  const reached = { plays: 0, stalled: 0, deleted: 0, violations: [] as string[] };
  for (let calls = 0; ; calls++) {
    let stalled = false;
    for (let seed = 0; seed < either(40, 5); seed++) {
      const { world, made } = await play(calls, seed, keepsStatus, checksVersions);
      stalled ||= made === calls;
      reached.plays++;
      reached.deleted += world.deleted.length;
      reached.violations.push(...world.violations);
    }
    if (!stalled) return reached;
    reached.stalled++;
  }
}

describe("a function that is suspended between two of its calls", () => {
  for (const [name, keepsStatus] of [
    ["with reservations in the budget's status", true],
    ["with reservations in a Lease", false],
  ] as const)
    it(`never disrupts a second zone, ${name}`, async () => {
      const reached = await playAll(keepsStatus);
      assert.deepEqual(reached.violations, []);
      assert.ok(reached.stalled >= 4 && reached.deleted > reached.plays, JSON.stringify(reached));
    });

  it("does if the API server ignores versions", async () => {
    const { violations } = await playAll(true, false);
    assert.ok(violations.length > either(20, 2), String(violations.length));
  });
});
