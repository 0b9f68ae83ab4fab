/**
 * Safety of every zone under any answers of pods, any changes of the group, any outcomes of calls, and a process that
 * dies at any time.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { createReferences } from "../../../reconciler/scaling/act/references.ts";
import type { Outcome } from "../../../reconciler/model/outcome.ts";
import { createPodNotifier } from "../../../reconciler/scaling/act/pod-notifier.ts";
import { tick } from "../../../reconciler/run/tick.ts";
import { least, runs } from "../../runs.ts";
import { noChecks, noMaintenance, noPhases } from "../stage.ts";
import { createWorld, happen, HAPPENING_NAMES, SETTINGS, type World } from "./world.ts";
import { FATES, startProcess, type Process } from "./world-cluster.ts";

/** One tick of a new process; records a violation if more than one zone was touched. */
async function pass(world: World, { cluster, podHttp, write, end }: Process): Promise<Outcome | undefined> {
  const over = new AbortController();
  const notifier = createPodNotifier({
    http: podHttp,
    clock: { monotonic: () => world.cluster.now() },
    onNote: () => {},
    signal: over.signal,
  });
  world.touched.clear();
  const ticking = tick({
    context: {
      cluster,
      fence: { write },
      clock: { now: () => world.cluster.now(), monotonic: () => 0, sleep: async () => {} },
      stop: new AbortController().signal,
    },
    namespaces: ["test"],
    takeResync: () => true,
    scaling: {
      podHttp,
      notifier,
      references: createReferences(cluster),
      clusterDomain: "cluster.local.",
      zoneTracker: "tracker",
      pinnedUntil: new Map(),
      mayDownscale: async () => undefined,
    },
    budgets: { mayDisrupt: async () => undefined, maintenance: noMaintenance },
    report: { emitEvents: () => {}, timesSuperseded: () => 0, onOutcome: () => {} },
    checking: noChecks,
    phased: noPhases,
  });
  const result = await ticking.catch(() => undefined);
  over.abort();
  await notifier.idle();
  end();
  if (world.touched.size > 1) world.violations.push(`${[...world.touched].join(", ")} were touched in one pass`);
  const [outcome] = result?.outcomes ?? [];
  if (outcome?.state === "failed" && outcome.error instanceof TypeError) throw outcome.error;
  return outcome;
}

// Zone a leads; b may follow it; c may follow either.
const settings = fc.tuple(fc.constantFrom(0, 3, 4), fc.constantFrom(0, 1, 3, 4), fc.nat(SETTINGS.length - 1));

const step = fc.record({
  shrinkFate: fc.constantFrom("well", "well", "well", "lostBefore", "lostAfter", "late"),
  happening: fc.record({ what: fc.constantFrom(...HAPPENING_NAMES), by: fc.nat(20) }),
  settles: fc.boolean(),
  diesAfter: fc.oneof(
    { weight: 5, arbitrary: fc.constant(Infinity) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 60 }).map((n) => n / 2) },
  ),
  fates: fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    {
      weight: 1,
      arbitrary: fc.array(fc.constantFrom("well", "well", "well", "well", ...FATES), { maxLength: 14, size: "max" }),
    },
  ),
});

/** The minimum number of plays that reach each of these cases; below it the property proves nothing about it. */
const LEAST = {
  shrunk: 100,
  deleted: 100,
  lostBefore: 100,
  lostAfter: 100,
  leaseLost: 100,
  killed: 500,
  OtherZoneNotReady: 200,
  MinTimeBetweenZones: 100,
  DelayNotReached: 50,
  PrepareFailed: 100,
  LeaseHeld: 50,
  shrinkUnanswered: 50,
};

describe("scaling and rolling out under any changes", () => {
  it("no zone shrinks below its leader or reference, by a pod whose delay is not over, or too soon after another; we never remove pods of a zone while another loses pods; one zone per pass", async () => {
    const reached = {
      lostBefore: 0,
      lostAfter: 0,
      late: 0,
      refused: 0,
      leaseLost: 0,
      killed: 0,
      shrunk: 0,
      shrinkUnanswered: 0,
      deleted: 0,
    };
    const held: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(
        settings,
        fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 3, maxLength: 3 }),
        fc.array(step, { minLength: 5, maxLength: 40, size: "max" }),
        async (settings, sizes, steps) => {
          const world = createWorld(settings, sizes);
          for (const { happening, settles, diesAfter, ...others } of steps) {
            happen(world, happening.what, happening.by);
            if (settles) happen(world, "sync", happening.by);
            const outcome = await pass(world, startProcess(world, { callsToLive: diesAfter, ...others, reached }));
            assert.deepEqual(world.violations, []);
            for (const { reason, message } of outcome?.scalingHolds ?? []) {
              const what = message.includes("the downscale Lease of its group is held") ? "LeaseHeld" : reason;
              held[what] = (held[what] ?? 0) + 1;
            }
          }
        },
      ),
      { numRuns: runs(400) },
    );
    const all: Record<string, number> = { ...reached, ...held };

    for (const [what, count] of Object.entries(LEAST))
      assert.ok((all[what] ?? 0) >= least(count, 400), `${what}: ${JSON.stringify(all)}`);
  });
});
