/** Zones that follow a leader (§2.1), and the minimum time between downscales of two zones (§2.2). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ZoneScene, ZoneTraits } from "../../builders/zones.ts";
import { scale } from "./adapter.ts";
import {
  ago,
  decide,
  downscaled,
  factsOf,
  follows,
  force,
  LAST,
  minTime,
  mirror,
  mirrorOf,
  type More,
  NOW,
  READY_ONLY,
  whyNot,
} from "./scene.ts";

type Case = readonly [name: string, zones: readonly ZoneScene[], expected: string, more?: More];

const GROWING = { replicas: 5, statusReplicas: 3 };

const FOLLOWS = follows("a");
const READY = follows("a", READY_ONLY);
const CASES: readonly Case[] = [
  ["without a leader no zone is scaled", ["nn", "nnn"], ""],
  ["a leader that is not in the group", [{}, follows("x")], "LeaderNotFound"],
  ["a leader without a name", [follows("")], "LeaderNotFound"],
  ["a leader of the same size", [{}, FOLLOWS], ""],
  ["a larger leader", ["nnnn", FOLLOWS], "scale b to 4"],
  ["a group with a zone that is being deleted is not scaled", ["nnnn", FOLLOWS, { terminating: true }], ""],
  ["a larger leader that is not ready, without ready-only", ["nnnn ready 2", FOLLOWS], "scale b to 4"],
  ["ready-only: a leader that is not ready", ["nnnn ready 3", READY], "LeaderNotReady"],
  ["ready-only: a ready leader", ["nnnn", READY], "scale b to 4"],
  [
    "ready-only: a leader whose status is older than its spec",
    [{ replicas: 4, generation: 2, observedGeneration: 1 }, READY],
    "LeaderNotReady",
  ],
  [
    "ready-only: a leader of 2 that grows to 5 and stops at 3, all ready",
    [GROWING, { replicas: 2, ...READY }],
    "LeaderNotReady",
  ],
  ["without it such a leader is followed", [GROWING, { replicas: 2, ...FOLLOWS }], "scale b to 5"],
  [
    "the second hop waits for the first",
    ["nnnn", { replicas: 4, statusReady: 3, ...READY }, follows("b", READY_ONLY)],
    "LeaderNotReady",
  ],
  ["and then follows", ["nnnn", { replicas: 4, ...READY }, follows("b", READY_ONLY)], "scale c to 4"],
  ["ready-only does not stop a zone from shrinking", ["nn ready 1", READY], "scale b to 2"],
  ["forced to 0 while the leader has 5", ["nnnnn", follows("a", force(0))], "scale b to 0"],
  [
    "force overrides the time between zones",
    [downscaled(0), { ...follows("a", force(1)), ...minTime("12h") }],
    "scale b to 1",
  ],
  [
    "forced, and a leader that is not ready",
    ["nnnnn ready 0", follows("a", { ...READY_ONLY, ...force(4) })],
    "scale b to 4",
  ],
  ["forced to its replicas it stays, regardless of the leader", ["nnnnn", follows("a", force(3))], ""],
  ["force affects only its own zone", [{}, follows("a", force(0)), FOLLOWS], "scale b to 0"],
  ["force without leader or reference does nothing", [{ annotations: force(0) }], ""],
  ["a leader of no pods takes its only follower along", [{ replicas: 0 }, FOLLOWS], "scale b to 0"],
  ["leader and follower of no pods", [{ replicas: 0 }, { replicas: 0, ...FOLLOWS }], ""],
  [
    "a leader that comes back from no pods is awaited by its follower",
    [{ statusReady: 0 }, { replicas: 0, ...READY }],
    "LeaderNotReady",
  ],
  ["and is followed once it is ready", [{}, { replicas: 0, ...READY }], "scale b to 3"],
  ["a zone that follows itself", [FOLLOWS], "LeaderCycle"],
  [
    "two that follow each other, and one that follows them",
    [follows("b"), { replicas: 2, ...FOLLOWS }, { replicas: 1, ...follows("b") }],
    "LeaderCycle, LeaderCycle, LeaderCycle",
  ],
  ["a leader and a reference", ["nnnnn", follows("a", mirrorOf("gone"))], "LeaderAndMirror"],
  ["followers come before mirroring zones", [mirror(2), "nnnn", follows("b")], "scale c to 4", { t: [5, 5] }],
  [
    "a waiting follower leaves its turn to a mirroring zone",
    [follows("x"), mirror(2)],
    "scale b to 3, write back 3, LeaderNotFound",
    { t: [3, 2] },
  ],
  [
    "a zone whose change is refused leaves its turn to the next one",
    ["nnnn", FOLLOWS, FOLLOWS],
    "scale c to 4, ScaleRefused",
    { refused: "ingester-zone-b" },
  ],
];

describe("a follower", () => {
  for (const [name, zones, expected, more] of CASES)
    it(`${name}: ${expected}`, async () => assert.equal(await decide(zones, more), expected));

  it("in a cycle is told its zones", async () =>
    assert.match((await whyNot([follows("b"), follows("a")])) ?? "", /zone-a follows zone-b follows zone-a/));

  it("is scaled down with the time of it, only then, and only if a zone of the group wants a time between zones", async () => {
    const recorded = async (...zones: ZoneTraits[]) => (await scale(factsOf(zones))).recorded;
    assert.equal(await recorded({ replicas: 2 }, { ...follows("a"), ...minTime("12h") }), "2026-01-02T12:00:00Z");
    assert.equal(await recorded({ replicas: 2 }, follows("a"), minTime("12h")), "2026-01-02T12:00:00Z");
    assert.equal(await recorded({ replicas: 4 }, { ...follows("a"), ...minTime("12h") }), undefined);
    assert.equal(await recorded({ replicas: 2 }, follows("a")), undefined);
  });
});

/** Zone a wants to shrink, as its leader b did, 12 h after any other zone at the earliest. */
const OWN = { ...follows("b"), ...minTime("12h") };
const early = (other: ZoneTraits, own: ZoneTraits = OWN): ZoneTraits[] => [own, { replicas: 2, ...other }];
const WAITS = "MinTimeBetweenZones";
const UNKNOWN = "MinTimeUnknown";
const SHRINKS = "scale a to 2";
/** The only zone of its group, which has just been scaled down. */
const ONLY = [{ ...mirror(3, { [LAST]: ago(0) }), ...minTime("12h") }];

/** What the Lease of the group records of a downscale of zone b to 2 replicas, or 3, so many seconds ago. */
const pending = (secondsAgo: number, to: number): object => ({
  "ingester-zone-b": {
    uid: "uid-ingester-zone-b",
    generation: 1,
    from: 4,
    to,
    prepared: { start: 2, end: 4 },
    at: new Date(NOW - secondsAgo * 1000).toISOString(),
  },
});
const tracked = (time: string): object => ({ lastDownscaled: time });
const trackerOf = (zone: string, entry: object | string): More => ({
  tracker: { [`ingester-zone-${zone}`]: typeof entry === "string" ? entry : JSON.stringify(entry) },
});

const TIMES: readonly Case[] = [
  [
    "its own downscale does not count",
    early({}, { ...OWN, annotations: { ...OWN.annotations, [LAST]: ago(0) } }),
    SHRINKS,
  ],
  ["the only zone of its group", ONLY, SHRINKS, { t: [2, 2] }],
  ["the only zone, while the zone tracker cannot be read", ONLY, SHRINKS, { t: [2, 2], tracker: "unreadable" }],
  ["the only other zone went to no pods", early({ replicas: 0, ...downscaled(10) }), WAITS],
  [
    "a leader of no pods, which another zone followed there a moment ago",
    [{ replicas: 0 }, { replicas: 0, ...follows("a"), ...downscaled(1) }, { ...follows("a"), ...minTime("12h") }],
    WAITS,
  ],
  ["none scaled down: no label needed", early({}, follows("b")), SHRINKS],
  ["one that cannot be read", early({ annotations: { [LAST]: "yesterday" } }), UNKNOWN],
  ["one 10 h ago", early(downscaled(10)), WAITS],
  ["one exactly 12 h ago", early(downscaled(12)), WAITS],
  ["one 14 h ago", early(downscaled(14)), SHRINKS],
  ["one in the future is not over", early(downscaled(-1)), WAITS],
  [
    "an annotation of the same name works like the label",
    early(downscaled(10), follows("b", { "grafana.com/min-time-between-zones-downscale": "12h" })),
    WAITS,
  ],
  ["the newest of several counts", [...early(downscaled(14)), downscaled(10), downscaled(20)], WAITS],
  ["without a label of its own", early(downscaled(10), follows("b")), UNKNOWN],
  ...["1d", "12x", "-1h"].map((text): Case => [
    `with a label that is no duration: ${text}`,
    early(downscaled(20), { ...OWN, ...minTime(text) }),
    UNKNOWN,
  ]),
  ["it does not stop a zone from growing", early({ replicas: 4, ...downscaled(1) }), "scale a to 4"],
  [
    "of times that differ, each zone waits its own, whatever that of the zone which was scaled down is",
    [
      { replicas: 2, ...downscaled(10), ...minTime("24h") },
      { ...follows("a"), ...minTime("12h") },
      { ...follows("a"), ...minTime("6h") },
    ],
    "scale c to 2, MinTimeBetweenZones",
  ],
  [
    "also if that one and another have shorter ones",
    [...early({ ...downscaled(10), ...minTime("6h") }), { replicas: 2, ...minTime("1h") }],
    WAITS,
  ],
  [
    "it holds a mirroring zone that has the label",
    [{ ...mirror(3), ...minTime("12h") }, downscaled(-1)],
    WAITS,
    { t: [2, 3] },
  ],

  ["one that only the zone tracker records", early({}), WAITS, trackerOf("b", tracked(ago(10)))],
  ["the zone tracker is newer than the annotation", early(downscaled(14)), WAITS, trackerOf("b", tracked(ago(10)))],
  ["an entry of the zone tracker that cannot be read", early({}), UNKNOWN, trackerOf("b", "{")],
  ["its own entry does not count", early({}), SHRINKS, trackerOf("a", tracked(ago(0)))],
  ["entries of other zones do not count", early({}), SHRINKS, trackerOf("x", "{")],
  ["a zone tracker that cannot be read", early({}), UNKNOWN, { tracker: "unreadable" }],

  ["one that was admitted and may still be stored", early({ replicas: 2 }), WAITS, { pending: pending(10, 1) }],
  ["one that was admitted and happened", early({ replicas: 2 }), WAITS, { pending: pending(4000, 2) }],
  ["one that was admitted and never happened", early({ replicas: 2 }), SHRINKS, { pending: pending(100, 1) }],
  [
    "one that never happened leaves the zone tracker's time",
    early({ replicas: 2 }),
    WAITS,
    { pending: pending(100, 1), ...trackerOf("b", tracked(ago(1))) },
  ],
];

describe("the time between scaling down two zones", () => {
  for (const [name, zones, expected, more] of TIMES)
    it(`${name}: ${expected}`, async () => assert.equal(await decide(zones, more), expected));

  it("names the start and the end, and has the same dedupKey as before", async () => {
    const at = async (now: number) => (await scale(factsOf(early(downscaled(2 + 1 / 6)), { now }))).holds[0];
    const [first, later] = [await at(NOW), await at(NOW + 3_600_000)];
    assert.equal(first?.message, "ingester-zone-a waits: ingester-zone-b was downscaled 2h10m ago, 9h50m left of 12h");
    assert.equal(later?.message, "ingester-zone-a waits: ingester-zone-b was downscaled 3h10m ago, 8h50m left of 12h");
    assert.equal(first.dedupKey, later.dedupKey);
  });
});
