import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { judgeGates } from "../../../reconciler/gates/hold.ts";
import type { GateRecord } from "../../../reconciler/gates/record.ts";
import { data, follow, gateOf, lost, noData, OTHER, SETTLED, settledRecord, stored, T0, viewOf } from "./builders.ts";
import { a, b, began, play, reasonFor, start, underWay, zones, zonesAt, type Kind } from "./play.ts";

describe("a gate between zones", () => {
  it("lets the first zone begin once that is recorded", () => {
    const before = settledRecord(zonesAt("1"));
    const { identity } = viewOf(start, a);
    const holdOf = (record: GateRecord) =>
      judgeGates([stored({}, record)], { identity, zones: start, now: 0 }).holds.get(a.uid)?.reason;
    const { record } = follow({}, { record: before, view: viewOf(start, a), answer: noData });
    assert.deepEqual([holdOf(before), holdOf(record)], ["GateWaiting", undefined]);
  });

  it("asks once a period, and lets the next zone begin after enough successes in a row", () => {
    const { seen, record } = play({}, [0, noData], [5, noData], [10, noData]);
    assert.deepEqual([seen, began(record)], [["errors Waiting", "- Waiting", "errors Passed"], "zone-a"]);
    assert.equal(reasonFor({}, record, 12), "GateWaiting", "that it begins is recorded first");
    const next = follow({}, { record, view: viewOf(zones, b, 12), answer: noData });
    assert.deepEqual([began(next.record), reasonFor({}, next.record, 13)], ["zone-a,zone-b", undefined]);
  });

  it("waits for the initial delay from when the previous zone was done", () => {
    const { seen } = play({ check: { initialDelaySeconds: 30 } }, [7, noData], [36, noData], [37, noData]);
    assert.deepEqual(seen, ["- Waiting", "- Waiting", "errors Waiting"]);
  });

  for (const [name, traits, answers, state, reason] of [
    ["begins again after a failure", {}, [noData, data, noData], "Waiting", "GateWaiting"],
    ["begins again after an error", {}, [noData, lost, noData], "Waiting", "GateWaiting"],
    ["says that it could not ask", {}, [noData, lost], "Waiting", "GateUnreachable"],
    [
      "counts errors as successes where it is to proceed",
      { spec: { onError: "Proceed" } },
      [lost, lost, lost],
      "Passed",
      undefined,
    ],
    ["fails after enough failures in a row", { check: { failureThreshold: 2 } }, [data, data], "Failed", "GateFailed"],
    ["stays failed", { check: { failureThreshold: 1 } }, [data, noData, noData, noData], "Failed", "GateFailed"],
    ["holds nothing where it observes", { spec: { mode: "Observe" } }, [data, data], "Waiting", undefined],
  ] as const)
    it(name, () => {
      const { record } = play(traits, ...answers.map((answer, i) => [i * 10, answer] as const));
      assert.deepEqual([record.stages.at(-1)?.state, reasonFor(traits, record)], [state, reason]);
    });

  it("passes only when all checks have passed at once", () => {
    const query = { expr: "up", url: "prom" };
    const check = { query, successWhen: "NoData", initialDelaySeconds: 0, periodSeconds: 10, successThreshold: 1 };
    const checks = [
      { ...check, name: "one" },
      { ...check, name: "two" },
    ];
    const onlyOne: Kind = (at, name) => (name === "one" ? noData(at) : data(at));
    const onlyTwo: Kind = (at, name) => (name === "two" ? noData(at) : data(at));
    const { seen } = play({ spec: { checks } }, [0, onlyOne], [10, onlyTwo], [20, noData]);
    assert.deepEqual(seen, ["one,two Waiting", "one,two Waiting", "one,two Passed"]);
  });

  it("observes: the zone begins at once, and the checks go on", () => {
    const traits = { spec: { mode: "Observe" } };
    const { record } = play(traits, [0, data]);
    assert.equal(began(record), "zone-a,zone-b");
    const next = follow(traits, { record, view: viewOf(zones, OTHER, 10), answer: noData });
    assert.deepEqual([next.asked, next.record.stages[0]?.checks[0]?.streak.successes], [["errors"], 1]);
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
    const named = (record: GateRecord): string | undefined => {
      const { identity, now } = viewOf(zones, b, 50);
      return judgeGates([stored(traits, record)], { identity, zones, now })
        .holds.get(b.uid)
        ?.message.split(" is ")
        .at(-1);
    };
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
    assert.deepEqual([cure.asked, began(cure.record)], [[], "zone-b"], "zone b had begun, and may be cured first");
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
