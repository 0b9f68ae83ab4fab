import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decideFollower } from "../../../reconciler/scaling/leader.ts";
import type { ScaleDecision } from "../../../reconciler/scaling/snapshot.ts";
import type { ZoneTraits } from "../builders.ts";
import { downscaled, minTime, NOW, snapshot } from "./snapshots.ts";

const FORCE = "grafana.com/rollout-force-replicas";
const leader = (name: string, more: Record<string, string> = {}) => ({
  annotations: { "grafana.com/rollout-downscale-leader": `ingester-zone-${name}`, ...more },
});
const readyOnly = { "grafana.com/rollout-upscale-only-when-leader-ready": "true" };

function show(decision: ScaleDecision | undefined): string {
  if (!decision) return "-";
  return decision.action === "hold" ? decision.reason : String(decision.replicas);
}

/** The result for each zone, in order. */
const decide = (...zones: readonly ZoneTraits[]): string[] => {
  const given = snapshot(zones);
  return given.zones.map((zone) => show(decideFollower(zone, given)));
};

const TABLE: readonly [string, ZoneTraits[], string[]][] = [
  ["without a leader", [{ replicas: 2 }, { replicas: 3 }], ["-", "-"]],
  ["a leader that is not in the group", [{}, leader("x")], ["-", "LeaderNotFound"]],
  ["a leader without a name", [{ annotations: { "grafana.com/rollout-downscale-leader": "" } }], ["LeaderNotFound"]],
  ["a leader of the same size", [{}, leader("a")], ["-", "-"]],
  ["a larger leader", [{ replicas: 4 }, leader("a")], ["-", "4"]],
  ["a larger leader that is not ready, without ready-only", [{ replicas: 4, statusReady: 2 }, leader("a")], ["-", "4"]],
  [
    "ready-only: a leader that is not ready",
    [{ replicas: 4, statusReady: 3 }, leader("a", readyOnly)],
    ["-", "LeaderNotReady"],
  ],
  ["ready-only: a ready leader", [{ replicas: 4 }, leader("a", readyOnly)], ["-", "4"]],
  [
    "ready-only: a leader whose status is older than its spec",
    [{ replicas: 4, generation: 2, observedGeneration: 1 }, leader("a", readyOnly)],
    ["-", "LeaderNotReady"],
  ],
  [
    "the second hop waits for the first",
    [{ replicas: 4 }, { replicas: 4, statusReady: 3, ...leader("a", readyOnly) }, leader("b", readyOnly)],
    ["-", "-", "LeaderNotReady"],
  ],
  [
    "and then follows",
    [{ replicas: 4 }, { replicas: 4, ...leader("a", readyOnly) }, leader("b", readyOnly)],
    ["-", "-", "4"],
  ],
  [
    "ready-only does not stop a zone from shrinking",
    [{ replicas: 2, statusReady: 1 }, leader("a", readyOnly)],
    ["-", "2"],
  ],
  [
    "a label that is not a duration, another zone scaled down",
    [
      { replicas: 2, ...downscaled(20) },
      { ...leader("a"), ...minTime("12x") },
    ],
    ["-", "MinTimeUnknown"],
  ],
  [
    "a label that is negative",
    [
      { replicas: 2, ...downscaled(20) },
      { ...leader("a"), ...minTime("-1h") },
    ],
    ["-", "MinTimeUnknown"],
  ],
  [
    "another zone scaled down 10 h ago, 12 h needed",
    [
      { replicas: 2, ...downscaled(10) },
      { ...leader("a"), ...minTime("12h") },
    ],
    ["-", "MinTimeBetweenZones"],
  ],
  [
    "all scaled down more than 12 h ago",
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
    "the time between zones does not stop a zone from growing",
    [
      { replicas: 4, ...downscaled(1) },
      { ...leader("a"), ...minTime("12h") },
    ],
    ["-", "4"],
  ],
  ["forced to 0 while the leader has 5", [{ replicas: 5 }, leader("a", { [FORCE]: "0" })], ["-", "0"]],
  [
    "force overrides the time between zones",
    [{ ...downscaled(0) }, { ...leader("a", { [FORCE]: "1" }), ...minTime("12h") }],
    ["-", "1"],
  ],
  [
    "forced, and a leader that is not ready",
    [{ replicas: 5, statusReady: 0 }, leader("a", { ...readyOnly, [FORCE]: "4" })],
    ["-", "4"],
  ],
  [
    "forced to its replicas it stays, regardless of the leader",
    [{ replicas: 5 }, leader("a", { [FORCE]: "3" })],
    ["-", "-"],
  ],
  ["force affects only its own zone", [{}, leader("a", { [FORCE]: "0" }), leader("a")], ["-", "0", "-"]],
  ["force without leader or reference does nothing", [{ annotations: { [FORCE]: "0" } }], ["-"]],
  ["a leader of no pods takes its only follower along", [{ replicas: 0 }, leader("a")], ["-", "0"]],
  [
    "a leader of no pods, which another zone followed there a moment ago",
    [{ replicas: 0 }, { replicas: 0, ...leader("a"), ...downscaled(1) }, { ...leader("a"), ...minTime("12h") }],
    ["-", "-", "MinTimeBetweenZones"],
  ],
  ["leader and follower of no pods", [{ replicas: 0 }, { replicas: 0, ...leader("a") }], ["-", "-"]],
  [
    "a leader that comes back from no pods is awaited by its follower",
    [
      { replicas: 3, statusReady: 0 },
      { replicas: 0, ...leader("a", readyOnly) },
    ],
    ["-", "LeaderNotReady"],
  ],
  ["and is followed once it is ready", [{ replicas: 3 }, { replicas: 0, ...leader("a", readyOnly) }], ["-", "3"]],
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

  it("names the zones of the cycle", () => {
    const given = snapshot([leader("b"), leader("a")]);
    const [zone] = given.zones;
    assert.ok(zone);
    const decision = decideFollower(zone, given);
    assert.match(decision?.message ?? "", /ingester-zone-a follows ingester-zone-b follows ingester-zone-a/);
  });

  it("records the time of a downscale, only then, and only if a zone of the group wants a time between zones", () => {
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
