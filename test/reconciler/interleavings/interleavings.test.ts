import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { evictor, reconciler } from "./actors.ts";
import { createStepper, playEveryOrder } from "./stepper.ts";
import { createWorld, type Fate, type WorldOptions } from "./world.ts";

const PARTITIONS = { podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)" };

type Choose = (count: number) => number;

const MOST_ORDERS = 5000;

/** Two processes, each asked about one pod. */
async function playTwo(pods: readonly [string, string], options: Partial<WorldOptions>, choose: Choose) {
  const stepper = createStepper();
  const world = createWorld({ stepper, zones: 2, replicas: 2, spec: {}, revives: false, ...options });
  const stage = { stepper, world };
  pods.forEach((pod, i) => void evictor(stage, `function ${i}`, [`ingester-${pod}`]));
  await stepper.run(choose);
  return world;
}

describe("two evictions in every order of their API calls (E25)", () => {
  const CASES: readonly [string, readonly [string, string], object][] = [
    ["of two zones", ["zone-a-0", "zone-b-0"], {}],
    ["of one zone", ["zone-a-0", "zone-a-1"], {}],
    ["of one partition", ["zone-a-0", "zone-b-0"], PARTITIONS],
  ];
  for (const [name, pods, spec] of CASES) {
    it(`${name}: exactly one is allowed`, async () => {
      const plays = await playEveryOrder(async (choose) => {
        const world = await playTwo(pods, { spec }, choose);
        assert.deepEqual(world.violations, []);
        assert.equal(world.deleted.length, 1);
      }, MOST_ORDERS);
      assert.ok(plays > 100, String(plays));
    });
  }

  it("of a function and of the rollout: exactly one is allowed", async () => {
    const plays = await playEveryOrder(async (choose) => {
      const stepper = createStepper();
      const world = createWorld({ stepper, zones: 2, replicas: 1, spec: {}, revives: false });
      void evictor({ stepper, world }, "function", ["ingester-zone-b-0"]);
      void reconciler({ stepper, world }, "reconciler", 1);
      await stepper.run(choose);
      assert.deepEqual(world.violations, []);
      assert.equal(world.deleted.length, 1);
    }, MOST_ORDERS);
    assert.ok(plays > 500, String(plays));
  });

  it("would go wrong in an API server that ignores versions", async () => {
    let wrong = 0;
    await playEveryOrder(async (choose) => {
      wrong += (await playTwo(["zone-a-0", "zone-b-0"], { checksVersions: false }, choose)).violations.length;
    }, MOST_ORDERS);
    assert.ok(wrong > 20, String(wrong));
  });
});

const FATES: readonly Fate[] = ["lostBefore", "lostAfter", "late", "throttled", "killed"];
const MOST_TROUBLE = 6;

interface Large {
  readonly options: Pick<WorldOptions, "spec" | "keepsStatus" | "replicas"> & { readonly checksVersions?: boolean };
  /** Pods that each process of the function is asked about. */
  readonly asked: readonly (readonly string[])[];
  readonly stumbles: readonly string[];
}

/** Three functions, a reconciler that rolls all zones out, pods that come back, and some that stumble by themselves. */
async function playLarge({ options, asked, stumbles }: Large, choose: Choose) {
  let trouble = 0;
  const fate = (): Fate => {
    const drawn = trouble < MOST_TROUBLE ? choose(60) : FATES.length;
    if (drawn < FATES.length) trouble++;
    return FATES[drawn] ?? "well";
  };
  const stepper = createStepper();
  const world = createWorld({ stepper, zones: 3, revives: true, fate, ...options });
  const stage = { stepper, world };
  asked.forEach((pods, i) => void evictor(stage, `function ${i}`, pods, 2));
  void reconciler(stage, "reconciler", 3);
  void (async () => {
    for (const pod of stumbles) {
      await stepper.step(`${pod} stumbles or recovers`, "kubelet");
      world.stumble(pod);
    }
  })();
  await stepper.run(choose);
  return { world, trouble };
}

const pod = fc.tuple(fc.constantFrom("a", "b", "c"), fc.constantFrom(0, 1)).map(([zone, ordinal]) => `ingester-zone-${zone}-${ordinal}`);

const large = fc.record({
  options: fc.record({
    spec: fc.constantFrom({}, { maxUnavailable: 2 }, PARTITIONS, { maxUnavailable: 0 }),
    keepsStatus: fc.boolean(),
    replicas: fc.constant(2),
  }),
  asked: fc.array(fc.array(pod, { minLength: 1, maxLength: 2 }), { minLength: 3, maxLength: 3 }),
  stumbles: fc.array(pod, { maxLength: 3 }),
});

/** Choices from a seed: mulberry32. */
function dice(seed: number): Choose {
  let state = seed;
  return (count) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % count;
  };
}

describe("three functions, a reconciler, pods that come and go, lost answers and kills", () => {
  it("never two zones disrupted by us, never more than allowed, in 2,000 random orders", async () => {
    const seen = { deleted: 0, several: 0, trouble: 0 };
    const property = fc.asyncProperty(large, fc.integer(), async (play, seed) => {
      const { world, trouble } = await playLarge(play, dice(seed));
      seen.deleted += world.deleted.length;
      seen.several += world.deleted.length > 1 ? 1 : 0;
      seen.trouble += trouble;
      assert.deepEqual(world.violations, []);
    });
    await fc.assert(property, { numRuns: 2000 });
    assert.ok(seen.deleted > 2000 && seen.several > 500 && seen.trouble > 2000, JSON.stringify(seen));
  });

  it("would be found out without the precondition", async () => {
    const property = fc.asyncProperty(large, fc.integer(), async (play, seed) => {
      const { world } = await playLarge({ ...play, options: { ...play.options, checksVersions: false } }, dice(seed));
      assert.deepEqual(world.violations, []);
    });
    const { failed } = await fc.check(property, { numRuns: 200, endOnFailure: true });
    assert.ok(failed);
  });
});
