import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decideEviction } from "../../../reconciler/budget/decide-eviction.ts";
import { MAX_ZONES } from "../../../reconciler/model/too-many-zones.ts";
import { VERDICTS } from "../../../reconciler/budget/verdict.ts";
import { snapshot } from "./builders.ts";

describe("the StatefulSets of an eviction", () => {
  it("E15 needs two StatefulSets", () => {
    const whole = snapshot({ pod: "zone-a-0" });
    const answer = decideEviction({ ...whole, zones: whole.zones.slice(0, 1) });
    assert.deepEqual([answer.reason, answer.message], ["TooFewZones", "minimum number of StatefulSets not found"]);
  });

  it(`may be ${MAX_ZONES} of a group; with one more no pod of the group goes, and pods of other groups do`, () => {
    const answerOf = (count: number, more = {}) => {
      const zones = Object.fromEntries(Array.from({ length: count - 3 }, (_, i) => [`${i}`, {}]));
      return decideEviction(snapshot({ pod: "zone-a-0", zones: { ...zones, ...more } }));
    };
    assert.equal(answerOf(MAX_ZONES).reason, "Allowed");
    assert.equal(answerOf(MAX_ZONES, { other: { group: "distributor" } }).reason, "Allowed");
    const answer = answerOf(MAX_ZONES + 1);
    assert.deepEqual([answer.reason, answer.message], ["TooManyZones", "group ingester has 33 zones, more than 32"]);
    assert.equal(VERDICTS[answer.reason].code, 400);
  });

  // Upstream answers E06 with 500, but a foreseeable case is no server error.
  it("E06 a pod without an owner, or owned by another kind than StatefulSet, is refused for good", () => {
    const whole = snapshot({ pod: "zone-a-0" });
    const nobodys = { owner: undefined, madeBy: undefined, controller: undefined };
    const bare = decideEviction({ ...whole, pod: { ...whole.pod, ...nobodys } });
    assert.deepEqual([bare.reason, bare.message], ["OwnerNotFound", "unable to find a StatefulSet pod owner"]);
    const controller = { kind: "ReplicaSet", name: "rs" };
    const deployed = decideEviction({ ...whole, pod: { ...whole.pod, owner: "rs", madeBy: undefined, controller } });
    assert.equal(deployed.message, "pod owner is not a StatefulSet - ingester-zone-a-0 has owner rs (ReplicaSet)");
    assert.equal(VERDICTS[deployed.reason].code, 400);
  });

  // Upstream stops here (13.15).
  it("E27 an owner that the budget does not select is refused for good", () => {
    const whole = snapshot({ pod: "zone-a-0" });
    const answer = decideEviction({ ...whole, zones: whole.zones.slice(1) });
    assert.match(answer.message, /^unable to find StatefulSet ingester-zone-a by name: .* budget ingester selects$/);
    assert.equal(VERDICTS[answer.reason].code, 400);
  });
});
