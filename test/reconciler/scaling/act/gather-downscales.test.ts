/** The times of the zones' last downscales that the reconciler gathers in addition to their annotations. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nameLease } from "../../../../reconciler/downscale/act/downscale-lease.ts";
import { gatherDownscales } from "../../../../reconciler/scaling/act/gather-scaling.ts";
import { gatherGroupZones } from "../../../../reconciler/snapshot/gather.ts";
import { minTimeOver } from "../../../../reconciler/scaling/min-time.ts";
import { createZone, setStage } from "../../../functions/stage.ts";
import { minTime } from "../snapshots.ts";
import { add } from "../../../builders.ts";

const TRACKER = "tracker";
const START = Date.parse("2026-01-01T00:00:00Z");
const seconds = (ago: number): string => new Date(START - ago * 1000).toISOString();

describe("a downscale through /scale that is recorded only in the group's Lease", () => {
  const CASES: readonly [string, { to: number; at: string }, string | undefined, string | undefined][] = [
    ["that may still be stored holds the other zone", { to: 2, at: seconds(10) }, undefined, "MinTimeBetweenZones"],
    ["that happened holds it", { to: 3, at: seconds(4000) }, undefined, "MinTimeBetweenZones"],
    ["that never happened does not", { to: 2, at: seconds(100) }, undefined, undefined],
    [
      "that never happened leaves the zone tracker's time",
      { to: 2, at: seconds(100) },
      seconds(500),
      "MinTimeBetweenZones",
    ],
  ];
  for (const [name, pending, tracked, expected] of CASES)
    it(name, async (t) => {
      const stage = await setStage(t);
      const { store } = stage.emulator;
      const a = createZone(stage, "zone-a", minTime("12h"));
      createZone(stage, "zone-b", minTime("12h"));
      const note = {
        "zone-a": { uid: a.metadata?.uid, generation: 1, from: 4, prepared: { start: 2, end: 4 }, ...pending },
      };
      add(store, "Lease", nameLease("ingester", "zone-a"), {
        annotations: { "zonewise/pending-downscales": JSON.stringify(note) },
      });
      const data = tracked ? { "zone-a": JSON.stringify({ lastDownscaled: tracked }) } : {};
      add(store, "ConfigMap", TRACKER, { data });
      const zones = await gatherGroupZones({ namespace: "default", group: "ingester" }, { cluster: stage.cluster });
      const now = START;
      const times = await gatherDownscales(stage.cluster, zones, { zoneTracker: TRACKER, now });
      const [, b] = zones;
      assert.ok(b);
      assert.equal(minTimeOver(b, { zones, tracked: times, now }, "required")?.reason, expected);
    });
});
