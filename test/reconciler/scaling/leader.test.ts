import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readScaling } from "../../../reconciler/model/scaling.ts";
import { decideFollower } from "../../../reconciler/scaling/leader.ts";
import type { ScaleDecision, ScalingSnapshot } from "../../../reconciler/scaling/snapshot.ts";
import { minTimeOver } from "../../../reconciler/scaling/min-time.ts";
import { group, type ZoneTraits } from "../builders.ts";

const NOW = Date.UTC(2026, 0, 2, 12);
const ago = (hours: number): string => new Date(NOW - hours * 3_600_000).toISOString();

const FORCE = "grafana.com/rollout-force-replicas";
const LAST = "grafana.com/last-downscale";
const leader = (name: string, more: Record<string, string> = {}) => ({
  annotations: { "grafana.com/rollout-downscale-leader": `ingester-zone-${name}`, ...more },
});
const readyOnly = { "grafana.com/rollout-upscale-only-when-leader-ready": "true" };
const minTime = (text: string) => ({ labels: { "grafana.com/min-time-between-zones-downscale": text } });
const downscaled = (hours: number) => ({ annotations: { [LAST]: ago(hours) } });

function snapshot(zones: readonly ZoneTraits[], tracked: Record<string, string> = {}): ScalingSnapshot {
  return { zones: group(...zones).zones, tracked: new Map(Object.entries(tracked)), now: NOW };
}

function show(decision: ScaleDecision | undefined): string {
  if (!decision) return "-";
  return decision.action === "hold" ? decision.reason : String(decision.replicas);
}

/** What becomes of each zone, in order. */
const decide = (...zones: readonly ZoneTraits[]): string[] => {
  const given = snapshot(zones);
  return given.zones.map((zone) => show(decideFollower(zone, given)));
};

const TABLE: readonly [string, ZoneTraits[], string[]][] = [
  ["L01 without a leader", [{ replicas: 2 }, { replicas: 3 }], ["-", "-"]],
  ["L02 a leader that is not in the group", [{}, leader("x")], ["-", "LeaderNotFound"]],
  ["L02 a leader without a name", [{ annotations: { "grafana.com/rollout-downscale-leader": "" } }], ["LeaderNotFound"]],
  ["L03 a leader of the same size", [{}, leader("a")], ["-", "-"]],
  ["L04 a larger leader", [{ replicas: 4 }, leader("a")], ["-", "4"]],
  ["L05 a larger leader that is not ready, without ready-only", [{ replicas: 4, statusReady: 2 }, leader("a")], ["-", "4"]],
  ["L06 ready-only: a leader that is not ready", [{ replicas: 4, statusReady: 3 }, leader("a", readyOnly)], ["-", "LeaderNotReady"]],
  ["L06 ready-only: a ready leader", [{ replicas: 4 }, leader("a", readyOnly)], ["-", "4"]],
  [
    "L06 ready-only: a leader whose status is older than its spec",
    [{ replicas: 4, generation: 2, observedGeneration: 1 }, leader("a", readyOnly)],
    ["-", "LeaderNotReady"],
  ],
  [
    "L06 the second hop waits for the first",
    [{ replicas: 4 }, { replicas: 4, statusReady: 3, ...leader("a", readyOnly) }, leader("b", readyOnly)],
    ["-", "-", "LeaderNotReady"],
  ],
  ["L06 and then follows", [{ replicas: 4 }, { replicas: 4, ...leader("a", readyOnly) }, leader("b", readyOnly)], ["-", "-", "4"]],
  ["L07 ready-only does not keep a zone from shrinking", [{ replicas: 2, statusReady: 1 }, leader("a", readyOnly)], ["-", "2"]],
  [
    "L08 a label that is no duration, another zone scaled down",
    [
      { replicas: 2, ...downscaled(20) },
      { ...leader("a"), ...minTime("12x") },
    ],
    ["-", "MinTimeUnknown"],
  ],
  [
    "L08 a label that is negative",
    [
      { replicas: 2, ...downscaled(20) },
      { ...leader("a"), ...minTime("-1h") },
    ],
    ["-", "MinTimeUnknown"],
  ],
  [
    "L09 another zone scaled down 10 h ago, 12 h needed",
    [
      { replicas: 2, ...downscaled(10) },
      { ...leader("a"), ...minTime("12h") },
    ],
    ["-", "MinTimeBetweenZones"],
  ],
  [
    "L10 all scaled down more than 12 h ago",
    [{ replicas: 2, ...downscaled(13) }, { ...leader("a"), ...minTime("12h") }, downscaled(14)],
    ["-", "2", "-"],
  ],
  [
    "exactly 12 h are not over yet",
    [
      { replicas: 2, ...downscaled(12) },
      { ...leader("a"), ...minTime("12h") },
    ],
    ["-", "MinTimeBetweenZones"],
  ],
  [
    "the time between zones does not keep a zone from growing",
    [
      { replicas: 4, ...downscaled(1) },
      { ...leader("a"), ...minTime("12h") },
    ],
    ["-", "4"],
  ],
  ["F02 forced to 0 while the leader has 5", [{ replicas: 5 }, leader("a", { [FORCE]: "0" })], ["-", "0"]],
  [
    "F02 forced regardless of the time between zones",
    [{ ...downscaled(0) }, { ...leader("a", { [FORCE]: "1" }), ...minTime("12h") }],
    ["-", "1"],
  ],
  ["forced, and a leader that is not ready", [{ replicas: 5, statusReady: 0 }, leader("a", { ...readyOnly, [FORCE]: "4" })], ["-", "4"]],
  ["forced to what it has stays, whatever the leader has", [{ replicas: 5 }, leader("a", { [FORCE]: "3" })], ["-", "-"]],
  ["F03 force concerns its own zone alone", [{}, leader("a", { [FORCE]: "0" }), leader("a")], ["-", "0", "-"]],
  ["force without leader or reference does nothing", [{ annotations: { [FORCE]: "0" } }], ["-"]],
  ["a zone that follows itself", [leader("a")], ["LeaderCycle"]],
  [
    "two that follow each other, and one that follows them",
    [leader("b"), { replicas: 2, ...leader("a") }, { replicas: 1, ...leader("b") }],
    ["LeaderCycle", "LeaderCycle", "LeaderCycle"],
  ],
  [
    "a leader and a reference",
    [
      { replicas: 5 },
      leader("a", {
        "grafana.com/rollout-mirror-replicas-from-resource-name": "t",
        "grafana.com/rollout-mirror-replicas-from-resource-kind": "T",
      }),
    ],
    ["-", "LeaderAndMirror"],
  ],
];

describe("leader and follower", () => {
  for (const [name, zones, expected] of TABLE) it(name, () => assert.deepEqual(decide(...zones), expected));

  it("names the circle", () => {
    const given = snapshot([leader("b"), leader("a")]);
    const [zone] = given.zones;
    assert.ok(zone);
    const decision = decideFollower(zone, given);
    assert.match(decision?.message ?? "", /ingester-zone-a follows ingester-zone-b follows ingester-zone-a/);
  });

  it("records when it scales down, and only then, and only where a zone of the group asks for a time between zones", () => {
    const recordAt = (...zones: readonly ZoneTraits[]): unknown => {
      const given = snapshot(zones);
      const decision = given.zones.map((zone) => decideFollower(zone, given)).find((one) => one !== undefined);
      return decision?.action === "scaleZone" ? decision.recordAt : "no decision to scale";
    };
    assert.equal(recordAt({ replicas: 2 }, { ...leader("a"), ...minTime("12h") }), NOW);
    assert.equal(recordAt({ replicas: 2 }, leader("a"), minTime("12h")), NOW);
    assert.equal(recordAt({ replicas: 4 }, { ...leader("a"), ...minTime("12h") }), undefined);
    assert.equal(recordAt({ replicas: 2 }, leader("a")), undefined);
  });
});

describe("the time between scaling down two zones (L11, L12)", () => {
  const label = minTime("12h");
  const own = { annotations: { [LAST]: ago(0) } };
  const cases: readonly [string, ZoneTraits[], Record<string, string>, string | undefined][] = [
    ["none scaled down: no label needed", [{}, {}], {}, undefined],
    ["its own downscale does not count", [{ ...label, ...own }, {}], {}, undefined],
    ["one that cannot be read", [label, { annotations: { [LAST]: "yesterday" } }], {}, "MinTimeUnknown"],
    ["one 10 h ago", [label, downscaled(10)], {}, "MinTimeBetweenZones"],
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
    assert.equal(at(NOW)?.cause, at(NOW + 3_600_000)?.cause);
  });
});

describe("F01 force-replicas", () => {
  const cases: readonly [string | undefined, number | undefined, boolean][] = [
    [undefined, undefined, false],
    ["5", 5, false],
    ["0", 0, false],
    ["+7", 7, false],
    ["2147483647", 2147483647, false],
    ["2147483648", undefined, true],
    ["-1", undefined, true],
    ["invalid", undefined, true],
    ["", undefined, true],
    [" 5", undefined, true],
    ["5.0", undefined, true],
  ];
  for (const [written, forced, complains] of cases) {
    it(`${JSON.stringify(written)} is ${forced ?? "ignored"}${complains ? ", with a complaint" : ""}`, () => {
      const { value, problems } = readScaling({}, written === undefined ? {} : { [FORCE]: written });
      assert.deepEqual([value.forced, problems.length > 0], [forced, complains]);
    });
  }
});
