/** Which checks a gate asks, and which zones it lets begin (§14): tick by tick. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import type { CustomObject } from "../../../infra/kubernetes/custom-resources.ts";
import { follow, type GateStatus, judge, type StoredGate } from "./adapter.ts";
import { data, type GateTraits, lost, noData, setOf, zonesOf } from "../../builders/gates.ts";
import { CREATED } from "../../builders/zones.ts";
import {
  begun,
  factsAt,
  histories,
  type History,
  holdOf,
  type Kind,
  play,
  type Scene,
  ticks,
  underWay,
  zones,
} from "./play.ts";

/** What a tick shows: the checks that it asks, the state of the stage, the zones that have begun, what holds zone b. */
const WAITS = "errors Waiting a GateWaiting";
const PASSES = "errors Passed a GateWaiting";
const BEGINS = "- Passed ab free";
const FAILS = "errors Failed a GateFailed";
const FAILED = "- Failed a GateFailed";
const SOAKS = "- Waiting a GateWaiting";

const ONE = { name: "one", query: { expr: "up", url: "prom" }, successWhen: "NoData", initialDelaySeconds: 0 };
const TWO_CHECKS = {
  spec: {
    checks: ["one", "two"].map((name) => ({ ...ONE, name, periodSeconds: 10, successThreshold: 1 })),
  },
};
const only =
  (good: string): Kind =>
  (at, name) =>
    name === good ? noData(at) : data(at);
const SOAKING = { spec: { soakSeconds: 25 } };
const SOAKING_ONLY = { spec: { soakSeconds: 60, checks: [] } };
const FAILING = { check: { failureThreshold: 1 } };
/** The name of the rollout of these zones to revision 2. */
const ROLLOUT = begun().status.identity;
const retrying = (retry: string): Scene => ({ edit: { ...FAILING, retry } });
const EDITED = { edit: { generation: 2 } };

histories("a gate between zones", [
  [
    "asks once a period, and lets the next zone begin after enough successes in a row, once that is recorded",
    {},
    ticks([0, noData], [5, noData], [10, noData], [12, noData]),
    [WAITS, SOAKS, PASSES, BEGINS],
  ],
  [
    "waits for the initial delay from when the previous zone was done",
    { check: { initialDelaySeconds: 30 } },
    ticks([7, noData], [36, noData], [37, noData]),
    [SOAKS, SOAKS, WAITS],
  ],
  [
    "begins again after a failure and an error, and says that it could not ask",
    {},
    ticks([0, noData], [10, data], [20, noData], [30, lost], [40, noData]),
    [WAITS, WAITS, WAITS, "errors Waiting a GateUnreachable", WAITS],
  ],
  [
    "counts errors as successes where it is to proceed",
    { spec: { onError: "Proceed" } },
    ticks([0, lost], [10, lost]),
    [WAITS, PASSES],
  ],
  [
    "fails after enough failures in a row, and stays failed",
    { check: { failureThreshold: 2 } },
    ticks([0, data], [10, data], [20, noData], [30, noData]),
    [WAITS, FAILS, FAILED, FAILED],
  ],
  [
    "passes only when all checks have passed at once",
    TWO_CHECKS,
    ticks([0, only("one")], [10, only("two")], [20, noData]),
    ["one,two Waiting a GateWaiting", "one,two Waiting a GateWaiting", "one,two Passed a GateWaiting"],
  ],
  [
    "observes: the zone begins at once, and the checks go on",
    { spec: { mode: "Observe" } },
    ticks([0, data], [10, noData, { wants: "other" }]),
    ["errors Waiting ab free", "errors Waiting a free"],
  ],
  [
    "soaks: the next zone is held although the checks have passed, and not longer",
    SOAKING,
    ticks([0, noData], [10, noData], [20, noData], [25, noData]),
    [WAITS, WAITS, WAITS, "- Passed a GateWaiting"],
  ],
  [
    "soaks, which is no pass: the checks must succeed at its end",
    SOAKING,
    ticks([20, data], [30, noData], [45, noData]),
    [WAITS, WAITS, PASSES],
  ],
  [
    "soaks, which is enough without checks",
    SOAKING_ONLY,
    ticks([0, noData], [59, noData], [60, noData], [61, noData], [600, noData]),
    [SOAKS, SOAKS, "- Passed a GateWaiting", BEGINS, BEGINS],
  ],
  [
    "never opens with neither checks nor a soak time",
    { spec: { checks: [] } },
    [[9999, noData]],
    ["- Waiting a GateInvalid"],
  ],
  [
    "asks a failed gate again by the annotation, once for each value",
    FAILING,
    ticks(
      [0, data],
      [10, data, retrying(ROLLOUT)],
      [20, noData, retrying(ROLLOUT)],
      [30, noData, retrying(`${ROLLOUT}/2`)],
    ),
    [FAILS, FAILS, FAILED, WAITS],
  ],
  ...["0123456789abcdef", `${ROLLOUT}x`, ""].map((value): History => [
    `asks no failed gate again by the value "${value}"`,
    FAILING,
    ticks([0, data], [10, noData, retrying(value)]),
    [FAILS, FAILED],
  ]),
  [
    "forgets its pass that is not used yet if its check is edited",
    {},
    ticks([0, noData], [10, noData], [11, noData, EDITED]),
    [WAITS, PASSES, WAITS],
  ],
  [
    "asks no more for a zone that has begun if its check is edited",
    {},
    ticks([0, noData], [10, noData], [11, noData], [20, data, { ...EDITED, zones: underWay, wants: "other" }]),
    [WAITS, PASSES, BEGINS, BEGINS],
  ],
  [
    "asks no more at a point that is edited away, and says nothing of it",
    {},
    ticks([0, noData], [10, noData, { edit: { generation: 2, spec: { when: ["BeforeFirstZone"] } } }]),
    [WAITS, "- none ab free"],
  ],
  [
    "asks again if there are other templates: a pass of another rollout does not count",
    {},
    ticks([0, noData], [10, noData], [11, noData, { zones: zonesOf("2>3 1>3 1>3") }]),
    [WAITS, PASSES, "errors Waiting A GateWaiting"],
  ],
  [
    "keeps no success of a zone that waits, once another zone is wanted",
    {},
    ticks([0, noData], [5, noData, { wants: "zone-c" }], [10, noData]),
    [WAITS, WAITS, WAITS],
  ],
  [
    "keeps every failure of a zone that waits, though another zone is wanted",
    FAILING,
    ticks([0, data], [5, noData, { wants: "zone-c" }], [10, noData]),
    [FAILS, WAITS, FAILED],
  ],
  [
    "trusts no time that is to come: after the clock was turned back its checks are asked again",
    {},
    ticks([3600, noData], [3610, noData], [0, noData]),
    [WAITS, PASSES, WAITS],
  ],
  [
    "that has failed stays so after the clock was turned back",
    FAILING,
    ticks([3600, data], [0, noData]),
    [FAILS, FAILED],
  ],
  [
    "trusts a clock that was turned back by a few seconds",
    {},
    ticks([60, noData], [70, noData], [65, noData]),
    [WAITS, PASSES, BEGINS],
  ],
]);

/** The gate with another status. */
const withStatus = (gate: StoredGate, status: object): CustomObject => ({
  ...gate,
  status: { ...gate.status, ...status },
});

describe("a gate between zones", () => {
  const [waiting, at] = [play({}, [0, noData]).gate, (seconds: number) => formatTimestamp(CREATED + seconds * 1000)];
  const [stage = assert.fail()] = waiting.status.stages;
  const [check = assert.fail()] = stage.checks;
  for (const [what, status] of [
    ["that are older than their stage", { stages: [{ ...stage, checks: [{ ...check, lastTime: at(-1) }] }] }],
    ["of a stage that is older than its rollout", { startTime: at(1) }],
    ["of a rollout that began at no time", { startTime: "yesterday" }],
  ] as const)
    it(`does not trust results ${what}`, () => {
      const { gate } = follow(factsAt(10, [withStatus(waiting, status)]), noData);
      assert.deepEqual(
        gate.status.stages.map(({ state, checks }) => [state, checks[0]?.consecutiveSuccesses]),
        [["Waiting", 1]],
      );
    });

  it("whose rollout another clock has dated up to a minute ahead asks once a period, and not before that time", () => {
    let gate: CustomObject = withStatus(begun(), { startTime: at(45) });
    const asked: number[] = [];
    for (let seconds = 1; seconds < 60; seconds++) {
      const next = follow(factsAt(seconds, [gate]), noData);
      if (next.asked.length > 0) asked.push(seconds);
      ({ gate } = next);
    }
    assert.deepEqual([asked, (gate.status as GateStatus).stages.at(-1)?.state], [[45, 55], "Passed"]);
  });

  it("is settled with its group, and then changes nothing more", () => {
    const done: Scene = { zones: zonesOf("2 2 2"), wants: "settled" };
    const { gate } = play({}, [0, noData], [10, noData], [50, noData, done]);
    assert.ok(gate.status.settledTime !== undefined);
    const again = follow(factsAt(99, [gate], done), noData);
    assert.deepEqual([again.gate, again.asked, again.nextAt], [gate, [], undefined]);
  });

  it("after the last zone only delays that the group counts as settled", () => {
    const done: Scene = { zones: zonesOf("2 2 2"), wants: "settled" };
    const heldBy = (gate: StoredGate): string | undefined => judge(factsAt(61, [gate], done)).beforeSettled?.reason;
    const traits = { spec: { when: ["AfterLastZone"] } };
    const { gate, seen } = play(traits, [0, data], [50, noData, done]);
    assert.deepEqual([seen, heldBy(gate)], [["- none ab free", "errors Waiting abC free"], "GateWaiting"]);
    const after = follow(factsAt(60, [gate], done), noData).gate;
    assert.ok(after.status.settledTime !== undefined);
    assert.equal(heldBy(after), undefined);
  });
});

const DAY = 86_400;
/** Another zone is in the way. */
const AWAY: Scene = { wants: "other" };
const withB = (...traits: Parameters<typeof setOf> extends [string, ...infer Rest] ? Rest : never): Scene => ({
  zones: zones.map((one, i) => (i === 1 ? setOf("b", ...traits) : one)),
});
/** A pod of zone b is of an earlier rollout that was not settled; so many have the new template. */
const mixed = (updated: number): Scene => withB("1", "2", { current: 2, updated });
const resized = (replicas: number, existing: number, updated: number): Scene => ({
  ...withB("1", "2", { replicas, existing, updated }),
  ...AWAY,
});

type Row = readonly [name: string, ticks: History[2], seen: readonly string[]];

/** After the pass of zone b at 10 s, which it has not used; at 11 s, that it begins is recorded. */
const passed = (rows: readonly Row[], traits: GateTraits = {}): readonly History[] =>
  rows.map(([name, all, seen]) => [name, traits, [[0, noData], [10, noData], ...all], [WAITS, PASSES, ...seen]]);

histories("a pass that its zone has not used yet", [
  [
    "is not given while another zone is in the way, however long the checks succeed",
    {},
    ticks([0, noData], [10, noData, AWAY], [20, noData, AWAY], [31, data], [DAY, noData]),
    [WAITS, WAITS, WAITS, WAITS, WAITS],
  ],
  ...passed([
    [
      "stays while its checks succeed, also for long",
      [21, 32, 43, 54, 65, 76, 87].map((seconds) => [seconds, noData, AWAY]),
      Array.from({ length: 7 }, () => PASSES),
    ],
    ["ends when a check fails", ticks([21, data, AWAY], [22, noData]), [PASSES, SOAKS]],
    [
      "ends when a check cannot be asked",
      ticks([21, lost, AWAY], [22, noData]),
      ["errors Passed a GateUnreachable", "- Waiting a GateUnreachable"],
    ],
    [
      "has ended a minute after the last answer, also where the zone was let begin and could not",
      ticks([11, noData], [71, noData]),
      [BEGINS, WAITS],
    ],
    [
      "is kept for good once a pod of the zone was replaced, and no check is asked any more",
      ticks([11, noData], [DAY, data, { zones: underWay }]),
      [BEGINS, BEGINS],
    ],
    [
      "is asked for again although a pod of the zone was lost meanwhile, as only the rollout begins a zone",
      [[DAY, noData, { zones: underWay }]],
      [WAITS],
    ],
    [
      "ends as the others do in a zone with a pod of an earlier rollout, while no pod is replaced",
      ticks([11, noData, mixed(0)], [71, noData, mixed(0)]),
      [BEGINS, WAITS],
    ],
    ["is kept there once a pod is replaced", ticks([11, noData, mixed(0)], [71, noData, mixed(1)]), [BEGINS, BEGINS]],
    [
      "is kept once all pods of the zone are updated and it is scaled to 0",
      ticks([11, noData], [DAY, noData, resized(0, 0, 0)]),
      [BEGINS, BEGINS],
    ],
    ["is kept in a zone of updated pods alone", ticks([11, noData], [DAY, noData, resized(1, 1, 1)]), [BEGINS, BEGINS]],
    [
      "ends in a zone whose pods beyond its replicas are not gone yet",
      ticks([11, noData], [DAY, noData, resized(0, 3, 0)]),
      [BEGINS, WAITS],
    ],
  ]),
  ...passed(
    [
      [
        "ends as failed after as many failures as the check allows",
        ticks([21, data, AWAY], [22, noData, AWAY]),
        [PASSES, FAILED],
      ],
    ],
    { check: { failureThreshold: 1 } },
  ),
]);

it("a pass counts for a minute after the last answer; one that its zone has used asks for no time to come back", () => {
  const { gate } = play({}, [0, noData], [10, noData], [11, noData]);
  assert.deepEqual([holdOf(gate, 70)?.reason, holdOf(gate, 71)?.reason], [undefined, "GateWaiting"]);
  assert.equal(follow(factsAt(DAY, [gate], { zones: underWay }), noData).nextAt, undefined);
});
