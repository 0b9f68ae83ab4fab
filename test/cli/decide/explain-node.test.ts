/** Each reason why a node is not updated now is told with its rule and its remedy. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { allow, explainDenial } from "../../../cli/decide/answer.ts";
import { explainDrain, explainNode, PHASE_RULES, SKIP_RULES } from "../../../cli/decide/explain-node.ts";
import { NODE_PHASES, type Policy } from "../../../reconciler/nodes/policy.ts";
import type { UpdateNode } from "../../../reconciler/nodes/node.ts";
import { SKIP_REASONS } from "../../../reconciler/nodes/snapshot.ts";
import { deadlineOf } from "../../../reconciler/nodes/state-machine.ts";
import { at, busyNode, entry, MINUTE, node, policy, shadow } from "../../reconciler/nodes/fixture.ts";

const told = (one: UpdateNode, policy?: Policy) => explainNode({ node: one, policy, namespace: "brupop" });

describe("zonewise explain node", () => {
  it("says of a drain each cause once, with the pods that it keeps, and lists those that may go", () => {
    const no = explainDenial({
      question: "evict",
      reason: "BudgetSpent",
      rule: "",
      message: "1 pod",
      objects: [],
      remedy: "",
    });
    const yes = allow("evict", "the budget has room", "Can be evicted");
    const told = (pods: Parameters<typeof explainDrain>[0]): string[] =>
      explainDrain(pods).map(({ allowed, answer = "no", message }) => `${allowed} ${answer} ${message}`);
    assert.deepEqual(
      told([
        ["a-0", no],
        ["b-0", yes],
        ["a-1", no],
      ]),
      ["false no a-0, a-1: 1 pod", "true These pods can be evicted b-0"],
    );
    assert.deepEqual(told([["b-0", yes]]), ["true Can be drained b-0"]);
  });

  for (const reason of SKIP_REASONS)
    it(`names rule and remedy of ${reason}`, () => {
      const frozen =
        reason === "Frozen"
          ? { frozen: { id: "n2-1", at: at(-MINUTE), reason: "HealthTimeout", message: "n2: too slow" } }
          : {};
      const answer =
        told(node("n1"), policy({}, { ...frozen, waiting: [{ node: "n1", reason, message: "because" }] })) ??
        assert.fail();
      assert.deepEqual(
        [answer.question, answer.allowed, answer.reason, answer.rule],
        ["update", false, reason, SKIP_RULES[reason].rule],
      );
      assert.match(answer.message, /^it runs 1.0.0 and will get 1.1.0; (?:because|since .*: n2: too slow)$/);
      assert.deepEqual(answer.objects, []);
      assert.notEqual(answer.remedy, "");
      if (reason === "Frozen") assert.match(answer.remedy, /nodeupdatepolicy default .*"unfreeze":"n2-1"/);
    });

  it("says with a freeze what keeps the node as well", () => {
    const frozen = { id: "n2-1", at: at(-MINUTE), reason: "HealthTimeout", message: "n2: too slow" };
    const waiting = [{ node: "n1", reason: "BeingRemoved", message: "the node has a taint" }];
    const answer = told(node("n1"), policy({}, { frozen, waiting })) ?? assert.fail();
    assert.equal(answer.reason, "Frozen");
    assert.match(answer.message, /: n2: too slow; BeingRemoved: the node has a taint$/);
  });

  for (const phase of NODE_PHASES)
    it(`names what an active node waits for while ${phase}, since when, and its deadline`, () => {
      const own = policy({}, { active: [entry("n1", { phase, waitsFor: "a person" })] });
      const answer = told(node("n1"), own) ?? assert.fail();
      assert.deepEqual([answer.reason, answer.rule, answer.since], [phase, PHASE_RULES[phase].rule, at(-MINUTE)]);
      assert.match(answer.message, /^it is updated from 1.0.0 to 1.1.0; a person/);
      assert.equal(answer.until, at(-MINUTE + deadlineOf(phase, own) * 1000));
    });

  it("names the pods that a drain waits for", () => {
    const blocked = [{ namespace: "cache", name: "zone-a-0", reason: "DisruptionBudget" }];
    const drain = { started_at: at(0), round_at: at(0), remaining: 1, blocked };
    const draining = busyNode("n1", "RebootedIntoUpdate", "StagedAndPerformedUpdate", { status: { drain } });
    const answer = told(draining, policy({}, { active: [entry("n1", { phase: "Draining" })] })) ?? assert.fail();
    assert.match(answer.message, /1 pods are left: cache\/zone-a-0 \(DisruptionBudget\)$/);
    assert.deepEqual(answer.objects, [{ kind: "Pod", name: "zone-a-0" }]);
  });

  it("says yes to a node at its version, and nothing of a node that is not managed", () => {
    const done = node("n1", { shadow: shadow("n1", {}, { target_version: "1.0.0" }) });
    assert.deepEqual(told(done, policy())?.allowed, true);
    assert.equal(told(node("n1", { managed: false, shadow: undefined }), policy()), undefined);
  });

  it("names what is missing: a policy, or a record of the node", () => {
    assert.equal(told(node("n1"))?.reason, "NoPolicy");
    assert.match(
      told(node("n1"), policy({}, { message: "the window is closed" }))?.message ?? "",
      /the window is closed$/,
    );
  });
});
