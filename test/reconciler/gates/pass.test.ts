import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { judgeGates } from "../../../reconciler/gates/hold.ts";
import type { GateRecord } from "../../../reconciler/gates/record.ts";
import { data, follow, lost, noData, OTHER, stored, viewOf } from "./builders.ts";
import { b, began, play, reasonFor, underWay, zones, type Kind } from "./play.ts";

describe("a pass that its zone has not used yet", () => {
  const { record: passed } = play({}, [0, noData], [10, noData]);
  /** That the zone begins is recorded. */
  const { record: begun } = follow({}, { record: passed, view: viewOf(zones, b, 11), answer: noData });
  /** Its state after 10 s more in which another zone is in the way. */
  const wait = (answer: Kind, record: GateRecord = passed, seconds = 21) =>
    follow({}, { record, view: viewOf(zones, OTHER, seconds), answer });

  it("is not given while another zone is in the way, however long the checks succeed", () => {
    let { record } = play({}, [0, noData]);
    for (const seconds of [10, 20, 30]) {
      const next = wait(noData, record, seconds);
      assert.deepEqual([next.asked, next.record.stages[0]?.state], [["errors"], "Waiting"]);
      ({ record } = next);
    }
    assert.equal(follow({}, { record, view: viewOf(zones, b, 31), answer: data }).record.stages[0]?.state, "Passed");
    const later = follow({}, { record, view: viewOf(zones, b, 86_400), answer: noData });
    assert.deepEqual(
      [later.record.stages[0]?.state, later.record.stages[0]?.checks[0]?.streak.successes],
      ["Waiting", 1],
    );
  });

  it("stays while its checks succeed", () => {
    let record = passed;
    for (const seconds of [21, 32, 43, 54, 65, 76, 87]) {
      const next = wait(noData, record, seconds);
      assert.deepEqual([next.asked, next.record.stages[0]?.state], [["errors"], "Passed"]);
      ({ record } = next);
    }
  });

  for (const [name, answer, reason] of [
    ["fails", data, "GateWaiting"],
    ["cannot be asked", lost, "GateUnreachable"],
  ] as const)
    it(`ends when a check ${name}`, () => {
      const { asked, record } = wait(answer);
      assert.deepEqual([asked, reasonFor({}, record, 22)], [["errors"], reason]);
      assert.equal(
        follow({}, { record, view: viewOf(zones, b, 22), answer: noData }).record.stages[0]?.state,
        "Waiting",
      );
    });

  it("ends as failed after as many failures as the check allows", () => {
    const traits = { check: { failureThreshold: 1 } };
    const { record } = follow(traits, { record: passed, view: viewOf(zones, OTHER, 21), answer: data });
    assert.equal(
      follow(traits, { record, view: viewOf(zones, OTHER, 22), answer: noData }).record.stages[0]?.state,
      "Failed",
    );
  });

  for (const [seconds, reason] of [
    [70, undefined],
    [71, "GateWaiting"],
  ] as const)
    it(`${reason ? "has ended" : "counts"} ${seconds - 10} s after the last answer`, () =>
      assert.equal(reasonFor({}, begun, seconds), reason));

  it("ends also where the zone was let begin and could not, as under a disruption budget", () => {
    assert.deepEqual([began(begun), reasonFor({}, begun, 71)], ["zone-a,zone-b", "GateWaiting"]);
    const next = follow({}, { record: begun, view: viewOf(zones, b, 71), answer: noData });
    assert.deepEqual([next.asked, began(next.record)], [["errors"], "zone-a"]);
  });

  it("is kept for good once a pod of the zone was replaced, and no check is asked any more", () => {
    const view = viewOf(underWay, b, 86_400);
    const next = follow({}, { record: begun, view, answer: data });
    assert.deepEqual([next.asked, next.nextAt, began(next.record)], [[], undefined, "zone-a,zone-b"]);
    assert.equal(judgeGates([stored({}, begun)], view).holds.get(b.uid), undefined);
  });

  describe("of a zone with a pod of an earlier rollout that was not settled", () => {
    const viewWith = (updated: number, seconds: number) => {
      const mixed = { ...b, status: { ...b.status, current: 2, updated } };
      return viewOf(
        zones.map((one) => (one.uid === b.uid ? mixed : one)),
        mixed,
        seconds,
      );
    };
    const mixed = follow({}, { record: passed, view: viewWith(0, 11), answer: noData }).record;

    for (const [what, updated, reason] of [
      ["ends as the others do while no pod is replaced", 0, "GateWaiting"],
      ["is kept once a pod is replaced", 1, undefined],
    ] as const)
      it(what, () => {
        const holds = judgeGates([stored({}, mixed)], viewWith(updated, 71)).holds;
        assert.deepEqual([began(mixed), holds.get(b.uid)?.reason], ["zone-a,zone-b", reason]);
      });
  });

  for (const [what, replicas, existing, updated, reason] of [
    ["is kept once all pods of the zone are updated and it is scaled to 0", 0, 0, 0, undefined],
    ["is kept in a zone of updated pods alone", 1, 1, 1, undefined],
    ["ends in a zone whose pods beyond its replicas are not gone yet", 0, 3, 0, "GateWaiting"],
  ] as const)
    it(what, () => {
      const status = { ...b.status, replicas: existing, current: existing - updated, updated };
      const scaled = zones.map((one) => (one.uid === b.uid ? { ...one, replicas, status } : one));
      const view = viewOf(scaled, b, 86_400);
      assert.equal(judgeGates([stored({}, begun)], view).holds.get(b.uid)?.reason, reason);
      const next = follow({}, { record: begun, view: viewOf(scaled, OTHER, 86_400), answer: noData });
      assert.deepEqual(next.asked, reason ? ["errors"] : []);
    });

  it("is asked for again although a pod of the zone was lost meanwhile, as only the rollout begins a zone", () => {
    const view = viewOf(underWay, b, 86_400);
    assert.equal(judgeGates([stored({}, passed)], view).holds.get(b.uid)?.reason, "GateWaiting");
  });
});
