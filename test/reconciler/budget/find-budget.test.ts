import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { goneHealth } from "../../../reconciler/model/health.ts";
import type { Pod } from "../../../reconciler/model/pod.ts";
import { VERDICTS } from "../../../reconciler/budget/verdict.ts";
import { findBudget, parseBudget, selectorOf, type StoredBudget } from "../../../reconciler/budget/zpdb.ts";
import { budgetObject, budgetPods } from "./builders.ts";

function stored(spec: object = {}, name = "ingester"): StoredBudget {
  const object = budgetObject(spec, name);
  const ref = { kind: "ZoneAwarePodDisruptionBudget", namespace: "test", name, uid: `uid-${name}` } as const;
  return { ref, content: parseBudget(object), matchLabels: selectorOf(object) };
}

const [pod, unready] = budgetPods({ pods: { 1: { ready: false } } }) as [Pod, Pod];
const elsewhere = { selector: { matchLabels: { "rollout-group": "store-gateway" } } };

const CASES: readonly [string, Pod, readonly StoredBudget[], string][] = [
  ["a pod that failed", { ...pod, phase: "Failed" }, [stored()], "200 pod is not ready"],
  ["a pod that has completed", { ...pod, phase: "Succeeded" }, [stored()], "200 pod is not ready"],
  ["a terminating pod", { ...pod, health: goneHealth(pod.health, undefined) }, [stored()], "200 pod is not ready"],
  ["no budget", pod, [], "200 no zoned pod disruption budget selects the pod"],
  ["no budget that selects the pod", pod, [stored(elsewhere)], "200 no zoned pod disruption budget selects the pod"],
  [
    "two budgets that select the pod",
    pod,
    [stored(), stored({}, "other"), stored(elsewhere, "third")],
    "400 multiple zoned pod disruption budgets found for pod: ingester, other",
  ],
  [
    "13.6 a stored budget that is invalid",
    pod,
    [stored({ maxUnavailable: -1 })],
    "400 zoned pod disruption budget ingester is not valid: invalid value: max unavailable must be 0 <= val, got -1",
  ],
  [
    "an invalid budget of other pods",
    pod,
    [stored({ ...elsewhere, maxUnavailable: -1 })],
    "200 no zoned pod disruption budget selects the pod",
  ],
  [
    "a budget whose selector cannot be read: it may select any pod",
    pod,
    [stored({ selector: {} })],
    "400 zoned pod disruption budget ingester is not valid: invalid value: selector is not found",
  ],
  [
    "a budget with expressions, which it cannot have",
    pod,
    [stored({ selector: { ...elsewhere.selector, matchExpressions: [{ key: "a", operator: "Exists" }] } })],
    "400 zoned pod disruption budget ingester is not valid: invalid value: selector is not valid, got matchExpressions",
  ],
];

describe("the budget of a pod", () => {
  for (const [name, one, budgets, expected] of CASES) {
    it(`${name}: ${expected}`, () => {
      const found = findBudget(one, budgets);
      assert.ok("reason" in found);
      assert.equal(`${VERDICTS[found.reason].code} ${found.message}`, expected);
    });
  }

  it("a running pod that is not ready is subject to its budget", () => {
    const found = findBudget(unready, [stored(elsewhere, "third"), stored()]);
    assert.equal("matchLabels" in found && found.name, "ingester");
  });

  it("a Pending pod is subject to its budget: it may be ready by the time it is deleted", () => {
    const found = findBudget({ ...unready, phase: "Pending" }, [stored()]);
    assert.equal("matchLabels" in found && found.name, "ingester");
  });

  const going = { ...pod, health: goneHealth(pod.health, undefined) };
  const unreadable = { ...going, labels: {}, textProblem: "too long" };
  for (const [what, one, budgets, reason] of [
    ["waits under a budget: it might reach the successor", going, [stored()], "PodTerminating"],
    ["passes without one", going, [stored(elsewhere)], "PodNotReady"],
    [
      "waits wherever there is a budget, if its labels are too long to be kept",
      unreadable,
      [stored()],
      "PodTerminating",
    ],
    ["passes where there is none", unreadable, [], "PodNotReady"],
  ] as const)
    it(`a disruption that names a terminating pod without a UID ${what}`, () => {
      const found = findBudget(one, budgets, { unpinned: true });
      assert.equal("reason" in found && found.reason, reason);
    });

  it("a disruption with another UID passes: it cannot take effect", () => {
    const found = findBudget(pod, [stored()], { uid: "of the one before" });
    assert.ok("reason" in found);
    assert.deepEqual([found.reason, VERDICTS[found.reason].code], ["OtherPod", 200]);
    assert.ok("matchLabels" in findBudget(pod, [stored()], { uid: pod.uid }));
  });

  it("an empty selector selects everything", () => {
    const found = findBudget({ ...pod, labels: {} }, [stored({ selector: { matchLabels: {} } })]);
    assert.equal("matchLabels" in found && found.name, "ingester");
  });
});
