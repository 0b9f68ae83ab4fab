import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compareStatus } from "../../../reconciler/group-status/decide-status.ts";
import type { RolloutGroupStatus } from "../../../reconciler/group-status/status.ts";
import { windowOf } from "../../../reconciler/group-status/zones.ts";
import { findWindowProblem } from "../../../reconciler/model/rollout-window.ts";
import { MAX_ZONES } from "../../../reconciler/model/refused-group.ts";
import { type Culprit, hold, type Reason } from "../../../reconciler/model/decision.ts";
import { group } from "../../builders/groups.ts";
import { CREATED, OLD } from "../../builders/zones.ts";
import { decide, deleted, held } from "./facts.ts";

/** The phase, and the conditions that are true: the others are false. */
function shown({ phase, conditions }: RolloutGroupStatus): string {
  assert.deepEqual(
    conditions.map(({ type, status }) => [type, status === "True" || status === "False"]),
    ["Ready", "Reconciling", "Stalled"].map((type) => [type, true]),
  );
  const [said = "nothing"] = conditions.flatMap(({ type, status, reason }) =>
    status === "True" ? [`${type} ${reason}`] : [],
  );
  assert.equal(conditions.filter(({ status }) => status === "True").length, said === "nothing" ? 0 : 1);
  return `${phase}, ${said}`;
}

const waitingFor = (pod: Partial<Culprit>): ReturnType<typeof held> => {
  const { hold: waits, ...rest } = held("MaxUnavailableReached");
  return waits ? { ...rest, hold: { ...waits, culprit: { kind: "Pod", name: "ingester-zone-a-0", ...pod } } } : rest;
};

/** It is held by this for so many seconds; the deadline is a minute. */
const lasting = (reason: Reason, after: number): RolloutGroupStatus =>
  decide(held(reason), decide(held(reason)), { after, deadlineMs: 60_000 });

describe("the phase and the conditions", () => {
  const READY = decide({});
  const MINUTE = decide(held("MaxUnavailableReached"));
  const FAILED = decide({ traits: [OLD], state: "failed" }, READY);
  const TABLE: readonly (readonly [name: string, expected: string, status: RolloutGroupStatus])[] = [
    ["all zones updated and ready", "Ready, Ready AllZonesUpdated", READY],
    [
      "all zones updated and ready, and one that is not scaled until somebody acts",
      "Blocked, Stalled LeaderNotFound",
      decide({ scalingHolds: [hold("LeaderNotFound", "its leader is not in its group", [])] }, READY),
    ],
    [
      "settled, but its status has changed since it was ready",
      "Waiting, Reconciling GroupChanged",
      decide({ traits: [{ statusReady: 2 }] }, READY),
    ],
    [
      "a gate after the last zone",
      "Waiting, Reconciling GateWaiting",
      decide(held("GateWaiting", [{}, {}, {}]), READY),
    ],
    ["pods were deleted", "RollingOut, Reconciling RollingOut", decide({ traits: [OLD], step: deleted })],
    ["a zone was scaled", "RollingOut, Reconciling ScalingZone", decide({ step: { ...deleted, action: "scaleZone" } })],
    ["an ordinary hold", "RollingOut, Reconciling MaxUnavailableReached", MINUTE],
    [
      "an ordinary hold beyond its patience",
      "RollingOut, Reconciling MaxUnavailableReached",
      decide(held("MaxUnavailableReached"), MINUTE, { after: 30 }),
    ],
    ["a hold without patience", "RollingOut, Reconciling OtherZoneNotReady", decide(held("OtherZoneNotReady"))],
    [
      "pods are not ready, with nothing to roll out",
      "Waiting, Reconciling ZoneNotReady",
      decide(held("ZoneNotReady", [{ statusReady: 2 }])),
    ],
    ["a user has paused it", "Paused, nothing", decide(held("ZonePaused"))],
    ["a gate that waits for longer than the deadline", "Waiting, Reconciling GateWaiting", lasting("GateWaiting", 61)],
    ["a reason that fails the group", "Blocked, Stalled BudgetUnusable", decide(held("BudgetUnusable"))],
    ["a gate that has failed: somebody has to look", "Blocked, Stalled GateFailed", decide(held("GateFailed"))],
    ["a gate that is invalid: it never opens by itself", "Blocked, Stalled GateInvalid", decide(held("GateInvalid"))],
    ["no step for longer than the deadline", "Blocked, Stalled ProgressDeadlineExceeded", lasting("ZoneNotReady", 61)],
    ["paused for longer than the deadline", "Paused, nothing", lasting("ZonePaused", 61)],
    [
      "an error, while it was ready and is well by status",
      "Ready, Ready AllZonesUpdated",
      decide({ state: "failed" }, READY),
    ],
    [
      "an error, without knowing that it was ready",
      "RollingOut, Reconciling ReconcileFailed",
      decide({ state: "failed" }),
    ],
    [
      "an error during a rollout",
      "RollingOut, Reconciling ReconcileFailed",
      decide({ traits: [OLD], state: "failed" }, MINUTE),
    ],
    ["an error with the first outdated pod", "RollingOut, Reconciling ReconcileFailed", FAILED],
    [
      "an error that lasts for less than 5 minutes",
      "RollingOut, Reconciling ReconcileFailed",
      decide({ traits: [OLD], state: "failed" }, FAILED, { after: 299 }),
    ],
    [
      "an error that lasts for 5 minutes",
      "Blocked, Stalled ReconcileFailed",
      decide({ traits: [OLD], state: "failed" }, FAILED, { after: 300 }),
    ],
    [
      "a pod that has not come up, and still may",
      "RollingOut, Reconciling MaxUnavailableReached",
      decide(waitingFor({ needsHelpAt: CREATED + 60_000 }), MINUTE, { after: 59 }),
    ],
    [
      "a pod that somebody has to help",
      "Blocked, Stalled MaxUnavailableReached",
      decide(waitingFor({ needsHelpAt: CREATED + 60_000 }), MINUTE, { after: 60 }),
    ],
    ["a server that does not answer a gate", "Waiting, Reconciling GateUnreachable", decide(held("GateUnreachable"))],
    [
      "a server that does not answer a gate for 5 minutes",
      "Blocked, Stalled GateUnreachable",
      decide(held("GateUnreachable"), decide(held("GateUnreachable")), { after: 300 }),
    ],
    [
      "it changed meanwhile, after it had stalled",
      "RollingOut, Reconciling GroupChanged",
      decide({ traits: [OLD], state: "superseded" }, decide(held("BudgetUnusable"))),
    ],
    [
      "it changed meanwhile, and a zone is outdated",
      "RollingOut, Reconciling GroupChanged",
      decide({ traits: [OLD], state: "superseded" }),
    ],
    [
      "a zone's latest spec is not observed",
      "Waiting, Reconciling StatusNotObserved",
      decide(held("StatusNotObserved", [{ generation: 2, observedGeneration: 1 }])),
    ],
    ["no zones", "Waiting, Reconciling NoZones", decide({ traits: [] })],
  ];
  for (const [name, expected, status] of TABLE) it(`${name}: ${expected}`, () => assert.equal(shown(status), expected));

  it("carry the generation that was read before the zones, and the time of their last change", () => {
    const later = decide(held("OtherZoneNotReady"), READY, { after: 60, generation: 4 });
    assert.equal(later.observedGeneration, 4);
    assert.deepEqual(
      later.conditions.map(({ observedGeneration, lastTransitionTime }) => [observedGeneration, lastTransitionTime]),
      [
        [4, "2026-01-01T00:01:00Z"],
        [4, "2026-01-01T00:01:00Z"],
        [4, "2026-01-01T00:00:00Z"],
      ],
    );
  });

  it("a zone has the annotations of its rollout window as they are written, a long one cut to what stays unreadable", () => {
    const window = "zonewise.dev/rollout-window";
    const { zones } = decide({
      traits: [
        {},
        { annotations: { [window]: " * * 2 * * * ", [`${window}-time-zone`]: "Europe/Berlin" } },
        { annotations: { "zonewise.dev/rollout-freezes": "x".repeat(5000) } },
      ],
    });
    assert.deepEqual(
      zones.map(({ rolloutWindow }) => rolloutWindow),
      [undefined, { cron: "* * 2 * * *", timeZone: "Europe/Berlin" }, { freezes: `${"x".repeat(1000)}…` }],
    );
    assert.deepEqual(
      zones.map((row) => findWindowProblem(windowOf(row))?.slice(0, 40)),
      [undefined, undefined, "annotation zonewise.dev/rollout-freezes "],
    );
  });

  it("scaling that waits does not keep a group from being ready, but is listed with its end", () => {
    const [zone] = group({}).zones;
    const wait = { ...hold("MinTimeBetweenZones", "b waits", zone ? [zone] : []), until: CREATED + 90_000 };
    const status = decide({ scalingHolds: [wait] });
    assert.equal(status.phase, "Ready");
    assert.deepEqual(status.holds, [
      {
        reason: "MinTimeBetweenZones",
        phase: "Waiting",
        message: "b waits",
        cause: "MinTimeBetweenZones: b waits",
        objects: [{ kind: "StatefulSet", name: "ingester-zone-a" }],
        waitsFor: { kind: "StatefulSet", name: "ingester-zone-a" },
        since: "2026-01-01T00:00:00Z",
        nextCheck: "2026-01-01T00:01:30Z",
      },
    ]);
    assert.deepEqual(
      [status.summary.reason, status.summary.waitsFor],
      ["MinTimeBetweenZones", "statefulset/ingester-zone-a"],
    );
  });

  it("what blocks keeps its time as long as the cause is the same, whatever the message", () => {
    const first = decide({ hold: { ...hold("ZoneNotReady", "waiting for 2", []), dedupKey: "a" } });
    const second = decide({ hold: { ...hold("ZoneNotReady", "waiting for 1", []), dedupKey: "a" } }, first, {
      after: 60,
    });
    assert.deepEqual(
      second.holds.map(({ since, message }) => [since, message]),
      [["2026-01-01T00:00:00Z", "waiting for 1"]],
    );
    assert.equal(
      decide({ hold: hold("ZoneNotReady", "waiting for 1", []) }, second, { after: 60 }).holds[0]?.since,
      "2026-01-01T00:01:00Z",
    );
  });

  it("a group that is not ready does not say that it is", () => {
    const { message } = decide({ traits: [{ statusReady: 2 }], message: "all zones are updated and ready" }, READY);
    assert.equal(message, "the statuses of the zones are changing; the next tick decides again");
  });

  it("a message of any length is stored with 1000 characters at most", () => {
    assert.equal(decide({ traits: [OLD], step: deleted, message: "x".repeat(40_000) }).message.length, 1000);
  });
});

describe("the difference of two statuses", () => {
  const status = decide(held("ZoneNotReady"));
  const reversed = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(reversed)
      : typeof value === "object" && value !== null
        ? Object.fromEntries(
            Object.entries(value)
              .map(([key, part]) => [key, reversed(part)] as const)
              .toReversed(),
          )
        : value;

  it("none, in whatever order their fields are", () =>
    assert.equal(compareStatus(reversed(status) as RolloutGroupStatus, status), "none"));
  it("details, if only sentences and estimates differ", () => {
    const said = {
      ...status,
      message: "other",
      conditions: status.conditions.map((one) => ({ ...one, message: "other" })),
    };
    assert.equal(compareStatus(said, status), "details");
    assert.equal(
      compareStatus({ ...status, progress: { ...status.progress, secondsPerPod: 7 } as never }, status),
      "details",
    );
  });
  for (const [name, other] of [
    ["a generation", { ...status, observedGeneration: 2 }],
    ["a reason", decide(held("OtherZoneNotReady"))],
    ["a count", decide(held("ZoneNotReady", [{ ...OLD, statusReady: 1 }, {}, {}]))],
    ["everything, of a new object", {}],
  ] as const)
    it(`essence, if they differ in ${name}`, () => assert.equal(compareStatus(other, status), "essence"));
});

it("a group of more zones than are handled lists those that one may have", () => {
  const traits = Array.from({ length: MAX_ZONES + 1 }, (_, i) => ({ name: `ingester-zone-${i}` }));
  const { zones, phase } = decide(held("TooManyZones", traits));
  assert.deepEqual([zones.length, phase], [MAX_ZONES, "Blocked"]);
});
