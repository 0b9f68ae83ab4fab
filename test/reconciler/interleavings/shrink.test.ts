/** A downscale or a rollout by the reconciler beside a downscale that a webhook admits: never two zones of a group at once. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { least, runs } from "../../runs.ts";
import { A, B, createShrinkWorld, type ShrinkOptions } from "./shrink-world.ts";
import { createStepper, playEveryOrder, seededRandom, type Choose, type Random } from "./stepper.ts";

const MAX_ORDERS = 10_000;

/** What a play reached, by the reports of the reconciler and the answers to the user. */
const CASES = {
  "the reconciler waits for the Lease":
    /ingester-zone-a waits to shrink: the downscale Lease of its group is held for ingester-zone-b/,
  "the reconciler waits for an admission":
    /ingester-zone-a waits to shrink: the downscale of ingester-zone-b .* may still be stored/,
  "the user waits for the Lease": /statefulset ingester-zone-a is already in process of updating replicas/,
  "the user waits for the zone":
    /statefulset ingester-zone-a has 2 replicas, which the StatefulSet controller has not observed yet/,
  "the reconciler is too slow": /the last read took too long/,
  "the rollout waits for the Lease":
    /ingester-zone-a waits: the downscale Lease of its group is held for ingester-zone-b/,
  "the rollout waits for an admission":
    /ingester-zone-a waits: the downscale of ingester-zone-b .* may still be stored/,
};
const WAITS = Object.keys(CASES).slice(0, 4);

type Reached = Record<string, number>;

interface Play extends Omit<ShrinkOptions, "stepper"> {
  readonly ticks?: number;
  /** The times by which the clock is set forward, each as a step of its own, in milliseconds. */
  readonly elapses?: readonly number[];
  /** The user asks only after these times. */
  readonly asksLate?: boolean;
}

const DELETED = "a pod was deleted";

/** Resolves with the zones that were scaled down, and that one was rolled out. */
async function play(
  { ticks = 1, elapses = [], asksLate = false, ...options }: Play,
  choose: Choose,
  reached: Reached,
): Promise<readonly string[]> {
  const stepper = createStepper();
  const world = createShrinkWorld({ stepper, ...options });
  const texts: string[] = [];
  const reconciling = (async () => {
    if (options.keepsReplicas) await world.deployA();
    for (let i = 0; i < ticks; i++) {
      const outcome = await world.reconcile();
      texts.push(...(outcome?.scalingHolds ?? []).map(({ message }) => message));
      if (outcome?.state === "held") texts.push(outcome.hold.message);
      if (outcome?.state === "superseded") texts.push(outcome.error.message);
    }
  })();
  const passing = (async () => {
    for (const ms of elapses) {
      await stepper.step("time passes", "time");
      world.elapse(ms);
    }
  })();
  const asking = (asksLate ? passing : Promise.resolve())
    .then(world.shrinkB)
    .then((refusal) => texts.push(refusal ?? ""));
  await stepper.run(choose);
  await Promise.all([reconciling, asking, passing]);
  for (const [name, text] of Object.entries(CASES))
    if (texts.some((one) => text.test(one))) reached[name] = (reached[name] ?? 0) + 1;
  const happened = [...(world.deleted.size > 0 ? [DELETED] : []), ...world.shrunk];
  for (const what of happened) reached[what] = (reached[what] ?? 0) + 1;
  return happened;
}

async function playAll(
  options: Play,
): Promise<{ readonly plays: number; readonly both: number; readonly reached: Reached }> {
  const reached: Reached = {};
  let both = 0;
  const plays = await playEveryOrder(async (choose) => {
    if ((await play(options, choose, reached)).length > 1) both++;
  }, MAX_ORDERS);
  return { plays, both, reached };
}

/** Asserts that each of these cases was reached at least so often. */
function assertReached(reached: Reached, least: Reached): void {
  for (const [what, count] of Object.entries(least))
    assert.ok((reached[what] ?? 0) >= count, `${what}: ${JSON.stringify(reached)}`);
}

describe("a downscale by the reconciler and one through the webhook, in every order of their API calls", () => {
  it("of a zone without the label: one zone shrinks, and the other one waits for the Lease, the admission or the pods", async () => {
    const { plays, both, reached } = await playAll({});
    assert.equal(both, 0);
    assert.ok(plays > 200, String(plays));
    assertReached(reached, { [A]: 30, [B]: 100, ...Object.fromEntries(WAITS.map((what) => [what, 15])) });
  });

  it("of a zone with the label: one zone shrinks, and the reconciler does not hold the Lease that the webhook takes for its write", async () => {
    const { plays, both, reached } = await playAll({ labelled: true });
    assert.equal(both, 0);
    assert.ok(plays > 200, String(plays));
    assertReached(reached, { [A]: 50, [B]: 100, "the user waits for the Lease": 10 });
    assert.equal(reached["the reconciler waits for the Lease"], undefined);
  });

  it("shrinks both if nobody takes the Lease for the reconciler's write", async () => {
    assert.ok((await playAll({ labelled: true, judgesReconciler: false })).both > 10);
  });

  it("shrinks both if the API server ignores the versions of Leases", async () => {
    assert.ok((await playAll({ checksVersions: false })).both > 10);
  });
});

describe("a rollout that begins beside a downscale of another zone through the webhook, in every order of their API calls", () => {
  it("disrupts one zone only: the other one waits", async () => {
    const { plays, both, reached } = await playAll({ keepsReplicas: true });
    assert.equal(both, 0);
    assert.ok(plays > 100, String(plays));
    const cases = [DELETED, B, ...Object.keys(CASES).slice(-2), "the user waits for the Lease"];
    assertReached(reached, Object.fromEntries(cases.map((what) => [what, 5])));
  });
});

/** Time passes rarely, and the reconciler's write arrives after everything else. */
const delayWrite =
  (random: Random): Choose =>
  (_, waiting) => {
    const rank = waiting.map(({ actor, label }) =>
      label === `store ${A}` ? 2 : actor === "time" && random(8) > 0 ? 1 : 0,
    );
    const first = rank.flatMap((one, i) => (one === Math.min(...rank) ? [i] : []));
    return first[random(first.length)] ?? 0;
  };

/** The reconciler holds the Lease for 10 s, others wait 5 s longer, and a user's request ends after 60 s. */
const ELAPSES = [[20_000], [8000, 8000], [3000, 20_000], [20_000, 30_000]];
const PLAYS = 2500;
/** The Lease expires while a write is under way whose own time would not be over. */
const SLOW_WRITE = { elapses: [6000, 9500], asksLate: true };

describe("a downscale by the reconciler that is delayed until its Lease has expired", () => {
  it("is given up: never two zones shrink in random orders", async () => {
    const reached: Reached = {};
    for (let seed = 0; seed < runs(PLAYS); seed++) {
      const random = seededRandom(seed);
      const shrunk =
        seed % 2 === 0
          ? await play({ ticks: 2, elapses: ELAPSES[(seed / 2) % ELAPSES.length] ?? [] }, random, reached)
          : await play(SLOW_WRITE, delayWrite(random), reached);
      assert.ok(shrunk.length <= 1, `seed ${seed}: ${shrunk.join()}`);
    }
    const counts = { [A]: 300, [B]: 300, "the reconciler is too slow": 20, "the reconciler waits for the Lease": 50 };
    assertReached(
      reached,
      Object.fromEntries(Object.entries(counts).map(([what, count]) => [what, least(count, PLAYS)])),
    );
  });
});
