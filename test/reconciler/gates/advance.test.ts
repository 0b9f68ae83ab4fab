import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { advanceGate } from "../../../reconciler/gates/advance.ts";
import { judgeGates } from "../../../reconciler/gates/hold.ts";
import type { GateRecord } from "../../../reconciler/gates/record.ts";
import { describeValid } from "../../../reconciler/gates/report.ts";
import { data, follow, gateOf, lost, noData, OTHER, SETTLED, settledRecord, stored, T0, viewOf } from "./builders.ts";
import {
  a,
  b,
  began,
  histories,
  holdFor,
  play,
  reasonFor,
  start,
  underWay,
  zones,
  zonesAt,
  type Kind,
  ticks,
} from "./play.ts";

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

histories("a gate between zones", [
  [
    "asks once a period, and lets the next zone begin after enough successes in a row, once that is recorded",
    {},
    ticks([0, noData], [5, noData], [10, noData], [12, noData]),
    ["errors Waiting a GateWaiting", "- Waiting a GateWaiting", "errors Passed a GateWaiting", "- Passed ab free"],
  ],
  [
    "waits for the initial delay from when the previous zone was done",
    { check: { initialDelaySeconds: 30 } },
    ticks([7, noData], [36, noData], [37, noData]),
    ["- Waiting a GateWaiting", "- Waiting a GateWaiting", "errors Waiting a GateWaiting"],
  ],
  [
    "begins again after a failure and an error, and says that it could not ask",
    {},
    ticks([0, noData], [10, data], [20, noData], [30, lost], [40, noData]),
    [
      "errors Waiting a GateWaiting",
      "errors Waiting a GateWaiting",
      "errors Waiting a GateWaiting",
      "errors Waiting a GateUnreachable",
      "errors Waiting a GateWaiting",
    ],
  ],
  [
    "counts errors as successes where it is to proceed",
    { spec: { onError: "Proceed" } },
    ticks([0, lost], [10, lost]),
    ["errors Waiting a GateWaiting", "errors Passed a GateWaiting"],
  ],
  [
    "fails after enough failures in a row, and stays failed",
    { check: { failureThreshold: 2 } },
    ticks([0, data], [10, data], [20, noData], [30, noData]),
    ["errors Waiting a GateWaiting", "errors Failed a GateFailed", "- Failed a GateFailed", "- Failed a GateFailed"],
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
    ticks([0, data], [10, noData, { wanted: OTHER }]),
    ["errors Waiting ab free", "errors Waiting a free"],
  ],
  [
    "soaks: the next zone is held although the checks have passed, and not longer",
    SOAKING,
    ticks([0, noData], [10, noData], [20, noData], [25, noData]),
    [
      "errors Waiting a GateWaiting",
      "errors Waiting a GateWaiting",
      "errors Waiting a GateWaiting",
      "- Passed a GateWaiting",
    ],
  ],
  [
    "soaks, which is no pass: the checks must succeed at its end",
    SOAKING,
    ticks([20, data], [30, noData], [45, noData]),
    ["errors Waiting a GateWaiting", "errors Waiting a GateWaiting", "errors Passed a GateWaiting"],
  ],
  [
    "soaks, which is enough without checks",
    SOAKING_ONLY,
    ticks([0, noData], [59, noData], [60, noData], [61, noData], [600, noData]),
    [
      "- Waiting a GateWaiting",
      "- Waiting a GateWaiting",
      "- Passed a GateWaiting",
      "- Passed ab free",
      "- Passed ab free",
    ],
  ],
  [
    "never opens with neither checks nor a soak time",
    { spec: { checks: [] } },
    [[9999, noData]],
    ["- Waiting a GateWaiting"],
  ],
]);

describe("a gate between zones", () => {
  it("lets the first zone begin once that is recorded", () => {
    const before = settledRecord(zonesAt("1"));
    const { identity } = viewOf(start, a);
    const holdOf = (record: GateRecord) =>
      judgeGates([stored({}, record)], { identity, zones: start, now: 0 }).holds.get(a.uid)?.reason;
    const { record } = follow({}, { record: before, view: viewOf(start, a), answer: noData });
    assert.deepEqual([holdOf(before), holdOf(record)], ["GateWaiting", undefined]);
  });

  it("says until when it soaks, and is valid with a soak time alone, not with neither", () => {
    const { record } = play(SOAKING_ONLY, [0, noData], [59, noData]);
    const hold = holdFor(SOAKING_ONLY, record, 59);
    assert.equal(hold?.until, T0 + 60_000);
    assert.match(
      hold.message,
      /^zone-b waits for gate gate: it soaks until 2026-01-01T00:01:00Z; since .*, next check at/,
    );
    const view = { ...viewOf(zones, b, 59), isHeld: true };
    assert.equal(advanceGate(stored(SOAKING_ONLY, record), view, new Map()).nextAt, T0 + 60_000);
    assert.equal(describeValid(gateOf(SOAKING_ONLY), true, record.stages.at(-1))?.reason, "Valid");
    assert.equal(describeValid(gateOf({ spec: { checks: [] } }), true)?.reason, "SpecUnreadable");
  });

  it("asks a failed gate again by the annotation, once for each value", () => {
    const traits = { check: { failureThreshold: 1 } };
    const { record: failed } = play(traits, [0, data]);
    const { identity } = failed;
    const again = follow({ ...traits, retry: identity }, { record: failed, view: viewOf(zones, b, 10), answer: data });
    assert.deepEqual(
      [again.asked, again.record.stages.at(-1)?.state, again.record.retried],
      [["errors"], "Failed", identity],
    );
    const same = follow(
      { ...traits, retry: identity },
      { record: again.record, view: viewOf(zones, b, 20), answer: noData },
    );
    assert.deepEqual(same.asked, []);
    const other = follow(
      { ...traits, retry: `${identity}/2` },
      { record: again.record, view: viewOf(zones, b, 20), answer: noData },
    );
    assert.deepEqual([other.asked, other.record.stages.at(-1)?.state], [["errors"], "Waiting"]);
    for (const retry of ["0123456789abcdef", `${identity}x`, ""])
      assert.deepEqual(
        follow({ ...traits, retry }, { record: failed, view: viewOf(zones, b, 10), answer: noData }).asked,
        [],
      );
  });

  it("names a value of the annotation that it has not obeyed yet", () => {
    const traits = { check: { failureThreshold: 1 } };
    const named = (record: GateRecord): string | undefined => holdFor(traits, record, 50)?.message.split(" is ").at(-1);
    let { record } = play(traits, [0, data]);
    const { identity } = record;
    assert.equal(named(record), identity);
    for (const [retry, next] of [
      [identity, `${identity}/2`],
      [`${identity}/2`, `${identity}/3`],
      [`${identity}/now`, `${identity}/2`],
    ] as const) {
      ({ record } = follow({ ...traits, retry }, { record, view: viewOf(zones, b, 10), answer: data }));
      assert.deepEqual([record.retried, named(record)], [retry, next]);
    }
  });

  it("forgets the results of a check that is edited, not what has passed", () => {
    const { record } = play({}, [0, noData]);
    const edited = follow({ generation: 2 }, { record, view: viewOf(zones, b, 10), answer: noData });
    assert.deepEqual(
      [edited.record.stages[0]?.state, edited.record.stages[0]?.checks[0]?.streak.successes],
      ["Waiting", 1],
    );
    const passed = play({}, [0, noData], [10, noData]).record;
    const asked = follow({ generation: 2 }, { record: passed, view: viewOf(zones, b, 11), answer: noData });
    assert.deepEqual(
      [reasonFor({ generation: 2 }, passed, 11), asked.record.stages[0]?.state],
      ["GateWaiting", "Waiting"],
    );
    const begun = play({}, [0, noData], [10, noData], [11, noData]).record;
    const kept = follow({ generation: 2 }, { record: begun, view: viewOf(underWay, OTHER, 20), answer: data });
    assert.deepEqual([kept.asked, kept.record.stages[0]?.state], [[], "Passed"]);
  });

  it("asks no more at a point that is edited away, and says nothing of it", () => {
    const { record } = play({}, [0, noData]);
    assert.equal(record.stages[0]?.point, "BetweenZones");
    const edited = { generation: 2, spec: { when: ["BeforeFirstZone"] } };
    const next = follow(edited, { record, view: viewOf(zones, b, 10), answer: noData });
    assert.deepEqual([next.asked, next.record.stages], [[], []]);
  });

  it("asks again with other templates: results of another rollout do not count", () => {
    const { record } = play({}, [0, noData], [10, noData], [11, noData]);
    const third = [...zonesAt("2", "3").slice(0, 2), ...zonesAt("1", "3").slice(2)];
    const [, nextB = assert.fail()] = third;
    const cure = follow({}, { record, view: viewOf(third, nextB, 20), answer: noData });
    assert.deepEqual([cure.asked, began(cure.record)], [[], "b"], "zone b had begun, and may be cured first");
    const [, , nextC = assert.fail()] = third;
    assert.equal(
      judgeGates([stored({}, record)], viewOf(third, nextC, 20)).holds.get(nextC.uid)?.reason,
      "GateWaiting",
    );
    const { record: next } = follow({}, { record, view: viewOf(third, nextC, 20), answer: noData });
    assert.equal(next.stages[0]?.checks[0]?.streak.successes, 1);
  });

  it("does not trust results that are older than their stage, or that cannot be read", () => {
    const { record } = play({}, [0, noData]);
    const [stage = assert.fail()] = record.stages;
    const [check = assert.fail()] = stage.checks;
    const old = {
      ...record,
      stages: [{ ...stage, checks: [{ ...check, streak: { ...check.streak, lastAt: stage.since - 1000 } }] }],
    };
    assert.deepEqual(stored({}, old).record?.stages[0]?.checks, []);
    assert.deepEqual(
      stored({}, { ...record, stages: [{ ...stage, since: record.startedAt - 1000 }] }).record?.stages,
      [],
    );
    assert.equal(gateOf({ status: { identity: "x", startTime: "yesterday" } }).record, undefined);
  });

  it("whose rollout another clock has dated up to a minute ahead asks once a period, and not before that time", () => {
    const { record: begun } = play({});
    let record: GateRecord = { ...begun, startedAt: T0 + 45_000 };
    const asked: number[] = [];
    for (let seconds = 1; seconds < 60; seconds++) {
      const next = follow({}, { record, view: viewOf(zones, b, seconds), answer: noData });
      if (next.asked.length > 0) asked.push(seconds);
      record = stored({}, next.record).record ?? assert.fail();
    }
    assert.deepEqual([asked, record.stages.at(-1)?.state], [[45, 55], "Passed"]);
  });

  it("is settled with its group, and then changes nothing more", () => {
    const { record } = play({}, [0, noData], [10, noData]);
    const settled = zonesAt("2");
    const { record: over } = follow({}, { record, view: viewOf(settled, SETTLED, 50), answer: noData });
    assert.ok(over.settledAt !== undefined);
    const again = follow({}, { record: over, view: viewOf(settled, SETTLED, 99), answer: noData });
    assert.deepEqual([again.record, again.asked, again.nextAt], [stored({}, over).record, [], undefined]);
  });
});

describe("a gate after the last zone", () => {
  it("only delays that the group counts as settled", () => {
    const traits = { spec: { when: ["AfterLastZone"] } };
    const { record } = play(traits, [0, data]);
    const done = zonesAt("2");
    const view = viewOf(done, SETTLED, 50);
    const before = stored(traits, record);
    assert.equal(judgeGates([before], view).beforeSettled?.reason, "GateWaiting");
    let next = follow(traits, { record, view, answer: noData });
    assert.deepEqual([next.asked, next.record.settledAt], [["errors"], undefined]);
    next = follow(traits, { record: next.record, view: viewOf(done, SETTLED, 60), answer: noData });
    assert.ok(next.record.settledAt !== undefined);
    assert.equal(judgeGates([stored(traits, next.record)], view).beforeSettled, undefined);
  });
});
