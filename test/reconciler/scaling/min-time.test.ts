import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { minTimeOver, type OtherZone, refuseByTime } from "../../../reconciler/scaling/min-time.ts";
import type { ZoneTraits } from "../builders.ts";
import { ago, downscaled, LAST, minTime, NOW, snapshot } from "./snapshots.ts";

describe("the time between scaling down two zones", () => {
  const label = minTime("12h");
  const own = { annotations: { [LAST]: ago(0) } };
  const cases: readonly [string, ZoneTraits[], Record<string, string>, string | undefined][] = [
    ["the only zone of its group", [{ ...label, ...own }], {}, undefined],
    [
      "the only zone, which the tracker has scaled down a moment ago",
      [label],
      { "ingester-zone-a": ago(0) },
      undefined,
    ],
    ["the only other zone went to no pods", [label, { replicas: 0, ...downscaled(10) }], {}, "MinTimeBetweenZones"],
    ["none scaled down: no label needed", [{}, {}], {}, undefined],
    ["its own downscale does not count", [{ ...label, ...own }, {}], {}, undefined],
    ["one that cannot be read", [label, { annotations: { [LAST]: "yesterday" } }], {}, "MinTimeUnknown"],
    ["one 10 h ago", [label, downscaled(10)], {}, "MinTimeBetweenZones"],
    ["one exactly 12 h ago", [label, downscaled(12)], {}, "MinTimeBetweenZones"],
    ["one 14 h ago", [label, downscaled(14)], {}, undefined],
    [
      "an annotation of the same name works like the label",
      [{ annotations: { "grafana.com/min-time-between-zones-downscale": "12h" } }, downscaled(10)],
      {},
      "MinTimeBetweenZones",
    ],
    [
      "the newest of several counts",
      [label, downscaled(14), downscaled(10), downscaled(20)],
      {},
      "MinTimeBetweenZones",
    ],
    ["one in the future is not over", [label, downscaled(-1)], {}, "MinTimeBetweenZones"],
    ["one that only the zone tracker records", [label, {}], { "ingester-zone-b": ago(10) }, "MinTimeBetweenZones"],
    [
      "the zone tracker is newer than the annotation",
      [label, downscaled(14)],
      { "ingester-zone-b": ago(10) },
      "MinTimeBetweenZones",
    ],
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

  it("a zone tracker that cannot be read does not hold the only zone of a group", () => {
    const given = { ...snapshot([label]), tracked: undefined };
    const [zone] = given.zones;
    assert.ok(zone);
    assert.equal(minTimeOver(zone, given, "required"), undefined);
  });

  it("names the start and the end, and has the same dedupKey as before", () => {
    const at = (now: number) => {
      const given = { ...snapshot([{}, { annotations: { [LAST]: ago(2 + 1 / 6) } }, label]), now };
      const zone = given.zones[2];
      assert.ok(zone);
      return minTimeOver(zone, given, "required");
    };
    assert.equal(
      at(NOW)?.message,
      "ingester-zone-c waits: ingester-zone-b was downscaled 2h10m ago, 9h50m left of 12h",
    );
    assert.equal(
      at(NOW + 3_600_000)?.message,
      "ingester-zone-c waits: ingester-zone-b was downscaled 3h10m ago, 8h50m left of 12h",
    );
    assert.equal(at(NOW)?.dedupKey, at(NOW + 3_600_000)?.dedupKey);
  });
});

describe("a downscale under admission, which waits for other zones' time", () => {
  const AT = Date.parse("2026-01-01T12:00:00Z");
  const other = (lastDownscale: string | undefined, minTime: string | undefined): OtherZone => ({
    name: "b",
    lastDownscale,
    minTime,
  });
  const wait = { reason: "MinTimeNotElapsed" };
  const CASES: readonly [string, OtherZone[], object | undefined][] = [
    ["no zone was scaled down", [other(undefined, "soon")], undefined],
    ["it was long ago", [other("2025-12-31T00:00:00Z", "12h")], undefined],
    ["its time is over this moment", [other("2026-01-01T00:00:00Z", "12h")], undefined],
    ["one second is missing", [other("2026-01-01T00:00:01Z", "12h")], wait],
    ["its clock is ahead", [other("2026-01-02T00:00:00Z", "1s")], wait],
    ["it is not labelled", [other("2026-01-01T12:00:00Z", undefined)], undefined],
    [
      "its label is not a duration",
      [other("2026-01-01T12:00:00Z", "1d")],
      { reason: "DownscaleUnreadable", message: "?" },
    ],
    [
      "its time is not a time",
      [other("2026-01-01 12:00:00", undefined)],
      { reason: "DownscaleUnreadable", message: "?" },
    ],
    ["the second zone", [other(undefined, "1h"), other("2026-01-01T11:30:00Z", "1h")], wait],
  ];
  for (const [name, others, expected] of CASES)
    it(`when ${name}`, () => {
      const refusal = refuseByTime(others, AT, "?");
      if (expected === undefined) assert.equal(refusal, undefined);
      else assert.partialDeepStrictEqual(refusal, expected);
    });

  it("names the zone, the time and the duration", () =>
    assert.equal(
      refuseByTime([other("2026-01-01T02:00:00+02:00", "12h1m")], AT, "")?.message,
      "statefulset b was downscaled at 2026-01-01 00:00:00 +0000 UTC and is labelled to wait 12h1m0s between zone downscales",
    ));
});
