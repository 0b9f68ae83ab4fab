import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { GroupFacts } from "../../../reconciler/group-status/facts.ts";
import { compareStatus, decideStatus } from "../../../reconciler/group-status/decide.ts";
import { nameOfGroup } from "../../../reconciler/group-status/name.ts";
import type { RolloutGroupStatus } from "../../../reconciler/group-status/status.ts";
import { hold, type Reason } from "../../../reconciler/model/decision.ts";
import { planRollout } from "../../../reconciler/rollout/plan.ts";
import { group, LAST, PREVIOUS, type ZoneTraits } from "../builders.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const OLD: ZoneTraits = { at: PREVIOUS, updateRevision: LAST };

interface Case extends Partial<GroupFacts> {
  readonly traits?: readonly ZoneTraits[];
}

function facts({ traits = [{}, {}, {}], ...more }: Case): GroupFacts {
  const { zones } = group(...traits);
  const common = {
    group: "ingester",
    zones,
    message: "said",
    hold: undefined,
    scalingHolds: [],
    step: undefined,
    replaced: 0,
    failing: false,
  };
  return { ...common, state: more.hold ? "held" : more.step ? "acted" : "settled", plan: planRollout(zones), ...more };
}

function decide(
  given: Case,
  earlier: Partial<RolloutGroupStatus> = {},
  { after = 0, generation = 1, deadlineMs = 1_800_000, passes = 1, tookMs = 0 } = {},
) {
  return decideStatus({ facts: facts(given), earlier, generation, deadlineMs, passes, tookMs, now: START + after * 1000 });
}

const held = (reason: Reason, traits: readonly ZoneTraits[] = [OLD, {}, {}]): Case => ({
  traits,
  hold: hold(reason, `${reason}!`, group(...traits).zones),
});
const deleted = { action: "deletePods", zone: "ingester-zone-a" } as const;
const shown = ({ phase, conditions }: RolloutGroupStatus): string =>
  [phase, ...conditions.map(({ type, status, reason }) => (status === "True" ? `${type} ${reason}` : `not ${type}`))].join(", ");

describe("the phase and the conditions", () => {
  const READY = decide({});
  const MINUTE = decide(held("MaxUnavailableReached"));
  const TABLE: readonly (readonly [name: string, expected: string, status: RolloutGroupStatus])[] = [
    ["all zones updated and ready", "Ready, Ready AllZonesUpdated, not Reconciling, not Stalled", READY],
    [
      "settled, but a paused zone lacks a pod",
      "RollingOut, not Ready, Reconciling GroupChanged, not Stalled",
      decide({ traits: [{ statusReady: 2 }] }),
    ],
    ["pods were deleted", "RollingOut, not Ready, Reconciling RollingOut, not Stalled", decide({ traits: [OLD], step: deleted })],
    [
      "a zone was scaled",
      "Scaling, not Ready, Reconciling ScalingZone, not Stalled",
      decide({ step: { ...deleted, action: "scaleZone" } }),
    ],
    ["an ordinary hold", "RollingOut, not Ready, Reconciling MaxUnavailableReached, not Stalled", MINUTE],
    [
      "an ordinary hold beyond its patience",
      "Waiting, not Ready, Reconciling MaxUnavailableReached, not Stalled",
      decide(held("MaxUnavailableReached"), MINUTE, { after: 30 }),
    ],
    ["a hold without patience", "Waiting, not Ready, Reconciling OtherZoneNotReady, not Stalled", decide(held("OtherZoneNotReady"))],
    [
      "pods are not ready, with nothing to roll out",
      "Degraded, not Ready, Reconciling ZoneNotReady, not Stalled",
      decide(held("ZoneNotReady", [{ statusReady: 2 }])),
    ],
    ["a user has paused it", "Paused, not Ready, not Reconciling, not Stalled", decide(held("ZonePaused"))],
    [
      "a gate that waits for longer than the deadline",
      "Waiting, not Ready, Reconciling GateWaiting, not Stalled",
      decide(held("GateWaiting"), decide(held("GateWaiting")), { after: 61, deadlineMs: 60_000 }),
    ],
    ["a reason that fails the group", "Stalled, not Ready, not Reconciling, Stalled BudgetUnusable", decide(held("BudgetUnusable"))],
    [
      "no step for longer than the deadline",
      "Stalled, not Ready, not Reconciling, Stalled ProgressDeadlineExceeded",
      decide(held("ZoneNotReady"), decide(held("ZoneNotReady")), { after: 61, deadlineMs: 60_000 }),
    ],
    [
      "paused for longer than the deadline",
      "Paused, not Ready, not Reconciling, not Stalled",
      decide(held("ZonePaused"), decide(held("ZonePaused")), { after: 61, deadlineMs: 60_000 }),
    ],
    [
      "an error, while it was ready and is well by status",
      "Ready, Ready AllZonesUpdated, not Reconciling, not Stalled",
      decide({ state: "failed" }, READY),
    ],
    [
      "an error, without knowing that it was ready",
      "RollingOut, not Ready, Reconciling ReconcileFailed, not Stalled",
      decide({ state: "failed" }),
    ],
    [
      "an error during a rollout",
      "RollingOut, not Ready, Reconciling ReconcileFailed, not Stalled",
      decide({ traits: [OLD], state: "failed" }, MINUTE),
    ],
    [
      "it changed meanwhile, and a zone is outdated",
      "RollingOut, not Ready, Reconciling GroupChanged, not Stalled",
      decide({ traits: [OLD], state: "superseded" }),
    ],
    [
      "a zone's latest spec is not observed",
      "Degraded, not Ready, Reconciling StatusNotObserved, not Stalled",
      decide(held("StatusNotObserved", [{ generation: 2, observedGeneration: 1 }])),
    ],
    ["no zones", "Empty, not Ready, not Reconciling, not Stalled", decide({ traits: [] })],
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

  it("scaling that waits does not keep a group from being ready, but is listed with its end", () => {
    const [zone] = group({}).zones;
    const wait = { ...hold("MinTimeBetweenZones", "b waits", zone ? [zone] : []), until: START + 90_000 };
    const status = decide({ scalingHolds: [wait] });
    assert.equal(status.phase, "Ready");
    assert.deepEqual(status.blocked, [
      {
        reason: "MinTimeBetweenZones",
        message: "b waits",
        cause: "MinTimeBetweenZones: b waits",
        objects: [{ kind: "StatefulSet", name: "ingester-zone-a" }],
        since: "2026-01-01T00:00:00Z",
        nextCheck: "2026-01-01T00:01:30Z",
      },
    ]);
    assert.equal(status.summary.blockedBy, "MinTimeBetweenZones");
  });

  it("what blocks keeps its time as long as the cause is the same, whatever the message", () => {
    const first = decide({ hold: { ...hold("ZoneNotReady", "waiting for 2", []), dedupKey: "a" } });
    const second = decide({ hold: { ...hold("ZoneNotReady", "waiting for 1", []), dedupKey: "a" } }, first, { after: 60 });
    assert.deepEqual(
      second.blocked.map(({ since, message }) => [since, message]),
      [["2026-01-01T00:00:00Z", "waiting for 1"]],
    );
    assert.equal(
      decide({ hold: hold("ZoneNotReady", "waiting for 1", []) }, second, { after: 60 }).blocked[0]?.since,
      "2026-01-01T00:01:00Z",
    );
  });

  it("a message of any length is stored with 1000 characters at most", () => {
    assert.equal(decide({ traits: [OLD], step: deleted, message: "x".repeat(40_000) }).message.length, 1000);
  });
});

describe("the progress clock", () => {
  const begun = decide({ traits: [OLD, OLD, OLD], step: deleted });

  it("starts with a rollout, and counts pods and zones that are left", () => {
    assert.deepEqual(begun.progress, {
      stepsLeft: 12,
      startTime: "2026-01-01T00:00:00Z",
      lastStepTime: "2026-01-01T00:00:00Z",
      secondsPerPod: 0,
      estimatedCompletionTime: "2026-01-01T00:00:00Z",
    });
  });
  it("stands still while nothing moves, and so does the estimate", () => {
    const later = decide({ ...held("ZoneNotReady", [OLD, OLD, OLD]) }, begun, { after: 300 });
    assert.deepEqual(later.progress, begun.progress);
  });
  it("moves on with a pod that is updated or becomes ready", () => {
    const unready = decide(held("ZoneNotReady", [{ ...OLD, statusReady: 2 }]), begun, { after: 60 });
    const ready = decide(held("MaxUnavailableReached", [OLD]), unready, { after: 90 });
    assert.deepEqual([unready.progress?.lastStepTime, ready.progress?.lastStepTime], ["2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z"]);
  });
  it("starts again with another revision", () => {
    const again = decide(held("ZoneNotReady", [{ at: PREVIOUS, updateRevision: "newer" }]), begun, { after: 60 });
    assert.equal(again.progress?.startTime, "2026-01-01T00:01:00Z");
  });
  it("stops when the group is ready, and keeps its times", () => {
    const done = decide({}, begun, { after: 60 });
    const later = decide({}, done, { after: 600 });
    const expected = {
      stepsLeft: 0,
      startTime: "2026-01-01T00:00:00Z",
      lastStepTime: "2026-01-01T00:01:00Z",
      completionTime: "2026-01-01T00:01:00Z",
    };
    assert.deepEqual([done.progress, later.progress], [expected, expected]);
  });
  it("estimates the end by the pods' own ready times, as many at once as the zone allows, from the last step on", () => {
    const slow = (zone: string, seconds: number) => ({ zone, count: 3, pods: [], atOnce: 2, msPerPod: seconds * 1000 });
    const { progress } = decide({ traits: [OLD], step: deleted, plan: [slow("a", 60), slow("b", 120)] });
    assert.deepEqual([progress?.secondsPerPod, progress?.estimatedCompletionTime], [90, "2026-01-01T00:06:00Z"]);
  });
  it("estimates nothing if no pod shows how long it takes", () => {
    const unknown = { zone: "a", count: 3, pods: [], atOnce: 1, msPerPod: undefined };
    assert.equal(decide({ traits: [OLD], step: deleted, plan: [unknown] }).progress?.estimatedCompletionTime, undefined);
  });
});

describe("the totals", () => {
  const first = decide({ traits: [OLD], step: deleted, replaced: 2 }, {}, { passes: 100, tookMs: 250 });

  it("count the first reconcile", () =>
    assert.deepEqual(first.totals, {
      reconciles: 1,
      passes: 100,
      failures: 0,
      podsReplaced: 2,
      timed: 1,
      seconds: 0.25,
      failing: false,
      lastSuccessTime: "2026-01-01T00:00:00Z",
    }));
  it("count the ticks in which nothing was written as well", () => {
    const next = decide({ state: "failed", failing: true }, first, { passes: 112, tookMs: 1000, after: 60 });
    assert.deepEqual(next.totals, { ...first.totals, reconciles: 13, passes: 112, failures: 1, timed: 2, seconds: 1.25, failing: true });
  });
  it("never go back, also if the count of ticks was lost with its Lease", () => {
    const next = decide({}, first, { passes: 3 });
    assert.deepEqual([next.totals?.reconciles, next.totals?.passes], [2, 3]);
  });
  it("of a group that was settled and stays so need no write", () => {
    const settled = decide({}, first, { passes: 101 });
    const later = decide({}, settled, { passes: 500, tookMs: 3, after: 600 });
    assert.equal(later.totals?.reconciles, 401);
    assert.equal(compareStatus(settled, later), "none");
  });
  it("that only count a failure are details", () => {
    const failing = decide({ state: "failed", failing: true }, first, { passes: 101 });
    assert.equal(compareStatus(failing, decide({ state: "failed", failing: true }, failing, { passes: 102 })), "details");
  });
  it("stay as they are while the group has no zones", () => assert.deepEqual(decide({ traits: [] }, first).totals, first.totals));
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

  it("none, in whatever order their fields are", () => assert.equal(compareStatus(reversed(status) as RolloutGroupStatus, status), "none"));
  it("details, if only sentences and estimates differ", () => {
    const said = { ...status, message: "other", conditions: status.conditions.map((one) => ({ ...one, message: "other" })) };
    assert.equal(compareStatus(said, status), "details");
    assert.equal(compareStatus({ ...status, progress: { ...status.progress, secondsPerPod: 7 } as never }, status), "details");
  });
  for (const [name, other] of [
    ["a generation", { ...status, observedGeneration: 2 }],
    ["a reason", decide(held("OtherZoneNotReady"))],
    ["a count", decide(held("ZoneNotReady", [{ ...OLD, statusReady: 1 }, {}, {}]))],
    ["everything, of a new object", {}],
  ] as const)
    it(`essence, if they differ in ${name}`, () => assert.equal(compareStatus(other, status), "essence"));
});

describe("the name of a RolloutGroup", () => {
  for (const [label, name] of [
    ["ingester", "ingester"],
    ["store.gateway-2", "store.gateway-2"],
    ["Ingester", /^group-ingester-[0-9a-f]{8}$/],
    ["a_b", /^group-a-b-[0-9a-f]{8}$/],
    ["", /^group-[0-9a-f]{8}$/],
  ] as const)
    it(`of "${label}" is ${String(name)}`, () =>
      typeof name === "string" ? assert.equal(nameOfGroup(label), name) : assert.match(nameOfGroup(label), name));
  it("tells groups apart that differ only in capitals", () => assert.notEqual(nameOfGroup("Ab"), nameOfGroup("aB")));
});
