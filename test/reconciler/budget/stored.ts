/** Stored budgets. */
import assert from "node:assert/strict";
import { type Budget, parseBudget } from "../../../reconciler/budget/zpdb.ts";

export const selector = { matchLabels: { "rollout-group": "ingester" } };

export const object = (spec: object, more: object = {}): object => ({
  apiVersion: "rollout-operator.grafana.com/v1",
  kind: "ZoneAwarePodDisruptionBudget",
  metadata: { namespace: "test", name: "ingester", uid: "u", resourceVersion: "7" },
  spec: { selector, ...spec },
  ...more,
});

/** The same as a valid budget. */
export function parse(spec: object): Budget {
  const budget = parseBudget(object(spec));
  assert.ok(!("problem" in budget), JSON.stringify(budget));
  return budget;
}
