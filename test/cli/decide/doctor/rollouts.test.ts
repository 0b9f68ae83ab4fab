import assert from "node:assert/strict";
import type { Gate } from "../../../../reconciler/gates/gate.ts";
import type { Zone } from "../../../../reconciler/model/zone.ts";
import { describe, it } from "node:test";
import type { Finding, DoctorFacts } from "../../../../cli/decide/doctor/check.ts";
import { ROLLOUTS } from "../../../../cli/decide/doctor/rollouts.ts";
import { diagnose } from "../../../../cli/decide/doctor/checks.ts";
import type { Phased } from "../../../../cli/decide/explain-phased.ts";
import { readTarget } from "../../../../reconciler/phased/target.ts";
import { gateOf } from "../../../builders/gates.ts";
import { group } from "../../../builders/groups.ts";
import { rolloutObject, setObject } from "../../../builders/phased.ts";
import { readPhased } from "../../../reconciler/phased/adapter.ts";

const examineGates = (gates: readonly Gate[], groups: ReadonlyMap<string, readonly Zone[]>): Finding[] =>
  ROLLOUTS.flatMap(({ find }) => find({ gates, groups, phased: [], claimed: [], now: 0 } as unknown as DoctorFacts));
const summaryOf = (findings: readonly Finding[]): string[] =>
  findings.map(({ level, check, object }) => `${level} ${check} ${object}`);
const phased: Phased = { rollout: readPhased(rolloutObject()), target: readTarget(setObject()) };

/** Groups of two zones each. */
const groupsOf = (...keys: readonly string[]) => new Map(keys.map((key) => [key, group({}, {}).zones]));

describe("zonewise doctor", () => {
  it("finds a StatefulSet that names a PhasedRollout which does not manage it: nothing would release its pods", () => {
    const { namespace, name: owner, targetRef } = phased.rollout;
    const find = (claimed: DoctorFacts["claimed"]) => diagnose({ phased: [phased], claimed });
    assert.deepEqual(find([{ namespace, name: targetRef, owner }]), []);
    for (const claim of [
      { namespace, name: targetRef, owner: "gone" },
      { namespace, name: "copy", owner },
      { namespace: "elsewhere", name: targetRef, owner },
    ]) {
      const [found, ...more] = find([claim]);
      assert.deepEqual([found?.check, found?.object, more], ["phased-claim", `statefulset/${claim.name}`, []]);
      assert.equal(
        found?.fix.split("\n")[1],
        `kubectl -n ${claim.namespace} annotate statefulset ${claim.name} sts.plus/phasedRollout- sts.plus/original-partition-`,
      );
    }
  });

  it("finds a gate that is not valid", () => {
    const gate = gateOf();
    const valid = { type: "Valid", status: "False", reason: "ExpressionInvalid", message: "at character 8" };
    const groups = groupsOf(`${gate.ref.namespace}/${gate.group}`);
    const [finding] = examineGates([{ ...gate, conditions: [valid as never] }], groups);
    assert.deepEqual(
      [finding?.object, finding?.message],
      ["rolloutgate/gate", "it is not valid: ExpressionInvalid, at character 8"],
    );
  });

  it("proposes the nearest group for a gate whose group does not exist", () => {
    const gate = gateOf();
    const near = `${gate.group}s`;
    assert.equal(
      examineGates([gate], groupsOf(`${gate.ref.namespace}/${near}`, `elsewhere/${gate.group}`))[0]?.fix,
      `if so:\nkubectl -n ${gate.ref.namespace} patch rolloutgate gate --type=merge -p '{"spec":{"group":"${near}"}}'`,
    );
  });

  it("finds a gate of a group that does not exist, and one that cannot be read", () => {
    const gate = gateOf();
    assert.deepEqual(summaryOf(examineGates([gate], groupsOf(`${gate.ref.namespace}/${gate.group}`))), []);
    assert.deepEqual(summaryOf(examineGates([gate], groupsOf())), ["warning gate-without-group rolloutgate/gate"]);
    assert.deepEqual(summaryOf(examineGates([{ ...gate, checks: [] }], groupsOf())), [
      "error gate-not-valid rolloutgate/gate",
    ]);
  });
});
