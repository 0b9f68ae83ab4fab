/** Whatever pods answer, whatever happens to the group, and whenever the process dies: what must never become of a zone. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { RolloutError } from "../../../infra/errors.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { createTeller } from "../../../reconciler/teller.ts";
import { scaleGroup } from "../../../reconciler/scale.ts";
import type { Scaler } from "../../../reconciler/scale-pass.ts";
import { asStatefulSet, createWorld, Killed, SETTINGS, type World } from "./world.ts";

/** One pass of a process that knows nothing of earlier ones. */
async function pass({ world, zones, cluster, podHttp }: World): Promise<void> {
  const read = zones.map((zone) => readZone(asStatefulSet(zone)));
  const over = new AbortController();
  const readReference = async (): Promise<number> =>
    (
      await cluster.get<{ spec: { replicas: number } }>(
        { group: "g", version: "v1", plural: "replicatemplates" },
        { namespace: "", name: "" },
      )
    ).spec.replicas;
  const teller = createTeller({ http: podHttp, clock: { monotonic: () => world.now }, onNote: () => {}, signal: over.signal });
  const scaler: Scaler = {
    cluster,
    podHttp,
    teller,
    references: {
      read: async () => ({
        resource: { group: "g", version: "v1", plural: "replicatemplates" },
        scale: {
          wanted: await readReference(),
          told: 0,
        },
      }),
    },
    fence: { write: () => ({}) },
    freshness: { noteWritten: () => {}, expect: () => () => {} },
    mayDisrupt: async () => undefined,
    clusterDomain: "cluster.local.",
    zoneTracker: "tracker",
    now: () => world.now,
    stop: new AbortController().signal,
  };
  const before = zones.map(({ replicas }) => replicas);
  await scaleGroup(read, scaler).catch((error: unknown) =>
    assert.ok(error instanceof Killed || error instanceof RolloutError, String(error)),
  );
  over.abort();
  await teller.idle();
  const changed = zones.filter((zone, i) => zone.replicas !== before[i]);
  if (changed.length > 1) world.violations.push(`${changed.map(({ name }) => name).join(", ")} changed in one pass`);
}

const happening = fc.oneof(
  fc.record({ what: fc.constant("time" as const), by: fc.integer({ min: 0, max: 14 * 60 }) }),
  fc.record({ what: fc.constant("reference" as const), by: fc.integer({ min: 0, max: 6 }) }),
  fc.record({ what: fc.constant("scale" as const), by: fc.integer({ min: 0, max: 20 }) }),
  fc.record({ what: fc.constant("gone" as const), by: fc.constant(0) }),
  fc.record({ what: fc.constant("mood" as const), by: fc.integer({ min: 0, max: 10 }) }),
);
const step = fc.record({
  happening,
  diesAfter: fc.oneof(
    { weight: 3, arbitrary: fc.constant(Infinity) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 20 }).map((n) => n / 2) },
  ),
});

describe("scaling, whatever happens", () => {
  it("no zone shrinks below its leader or reference, by a pod whose delay is not over, too soon after another, or while another still does; one zone changes a pass", async () => {
    let shrunk = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(SETTINGS.length - 1), { minLength: 3, maxLength: 3 }),
        fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 3, maxLength: 3 }),
        fc.array(step, { minLength: 5, maxLength: 30 }),
        async (settings, sizes, steps) => {
          const it = createWorld(settings, sizes);
          const { world, zones } = it;
          for (const { happening: event, diesAfter } of steps) {
            const { what, by } = event;
            if (what === "time") world.now += by * 60_000;
            if (what === "gone") for (const zone of zones) zone.ending = 0;
            if (what === "reference") world.reference = by;
            if (what === "mood") world.podMood = by;
            const zone = zones[by % 3];
            if (what === "scale" && zone) Object.assign(zone, { replicas: by % 7, version: zone.version + 1 });
            world.callsToLive = diesAfter;
            await pass(it);
            assert.deepEqual(world.violations, []);
          }
          shrunk += zones.filter((zone) => zone.shrunkAt !== undefined).length;
        },
      ),
      { numRuns: 1500 },
    );
    assert.ok(shrunk > 200, `zones shrank ${shrunk} times: the property met what it is about`);
  });
});
