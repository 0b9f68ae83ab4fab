import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { minTimeOver } from "../../../reconciler/scaling/min-time.ts";
import type { ZoneTraits } from "../builders.ts";
import { ago, downscaled, LAST, minTime, NOW, snapshot } from "./snapshots.ts";

describe("the time between scaling down two zones (L11, L12)", () => {
  const label = minTime("12h");
  const own = { annotations: { [LAST]: ago(0) } };
  const cases: readonly [string, ZoneTraits[], Record<string, string>, string | undefined][] = [
    ["none scaled down: no label needed", [{}, {}], {}, undefined],
    ["its own downscale does not count", [{ ...label, ...own }, {}], {}, undefined],
    ["one that cannot be read", [label, { annotations: { [LAST]: "yesterday" } }], {}, "MinTimeUnknown"],
    ["one 10 h ago", [label, downscaled(10)], {}, "MinTimeBetweenZones"],
    ["one exactly 12 h ago", [label, downscaled(12)], {}, "MinTimeBetweenZones"],
    ["one 14 h ago", [label, downscaled(14)], {}, undefined],
    [
      "an annotation of the same name does as well as the label",
      [{ annotations: { "grafana.com/min-time-between-zones-downscale": "12h" } }, downscaled(10)],
      {},
      "MinTimeBetweenZones",
    ],
    ["the newest of several counts", [label, downscaled(14), downscaled(10), downscaled(20)], {}, "MinTimeBetweenZones"],
    ["one in the future is not over", [label, downscaled(-1)], {}, "MinTimeBetweenZones"],
    ["one that only the zone tracker knows", [label, {}], { "ingester-zone-b": ago(10) }, "MinTimeBetweenZones"],
    ["the zone tracker is newer than the annotation", [label, downscaled(14)], { "ingester-zone-b": ago(10) }, "MinTimeBetweenZones"],
    ["an entry of the zone tracker that cannot be read", [label, {}], { "ingester-zone-b": "{" }, "MinTimeUnknown"],
    ["entries of other zones do not count", [label, {}], { "store-zone-b": "{", "ingester-zone-a": ago(0) }, undefined],
    ["without a label of its own", [{}, downscaled(10)], {}, "MinTimeUnknown"],
    ["with a label that cannot be read", [minTime("1d"), downscaled(10)], {}, "MinTimeUnknown"],
  ];
  for (const [name, zones, tracked, expected] of cases) {
    it(name, () => {
      const given = snapshot(zones, tracked);
      const [zone] = given.zones;
      assert.ok(zone);
      assert.equal(minTimeOver(zone, given, "required")?.reason, expected);
    });
  }

  it("a zone tracker that cannot be read holds", () => {
    const given = { ...snapshot([label, {}]), tracked: undefined };
    const [zone] = given.zones;
    assert.ok(zone);
    assert.equal(minTimeOver(zone, given, "required")?.reason, "MinTimeUnknown");
  });

  it("says since when and until when, and that it is the same wait as before", () => {
    const at = (now: number) => {
      const given = { ...snapshot([{}, { annotations: { [LAST]: ago(2 + 1 / 6) } }, label]), now };
      const zone = given.zones[2];
      assert.ok(zone);
      return minTimeOver(zone, given, "required");
    };
    assert.equal(at(NOW)?.message, "ingester-zone-c waits: ingester-zone-b was downscaled 2h10m ago, 9h50m left of 12h");
    assert.equal(at(NOW + 3_600_000)?.message, "ingester-zone-c waits: ingester-zone-b was downscaled 3h10m ago, 8h50m left of 12h");
    assert.equal(at(NOW)?.dedupKey, at(NOW + 3_600_000)?.dedupKey);
  });
});
