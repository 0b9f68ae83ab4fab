import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createLog } from "../../../../infra/log.ts";
import { createMetrics } from "../../../../infra/metrics/metrics.ts";
import { parseBudget, selectorOf } from "../../../../reconciler/budget/zpdb.ts";
import type { Draft } from "../../../../reconciler/report/events.ts";
import type { ListedBudget } from "../../../../reconciler/budget/act/gather-budget.ts";
import { observeBudgets } from "../../../../reconciler/budget/act/compose.ts";
import { budgetObject } from "../builders.ts";

function listed(generation: number, spec: object = {}, name = "ingester"): ListedBudget {
  const object = { ...budgetObject(spec, name), metadata: { namespace: "test", name, uid: `uid-${name}`, generation } };
  const ref = { kind: "ZoneAwarePodDisruptionBudget", namespace: "test", name, uid: `uid-${name}` } as const;
  return { ref, content: parseBudget(object), matchLabels: selectorOf(object), object };
}

const INVALID = { maxUnavailable: -1 };

/**
 * Successive lists and the resulting counts by result: no budget is stored, so no stale one has to be ignored
 *.
 */
const CASES: readonly [string, readonly (readonly ListedBudget[])[], Record<string, number>][] = [
  ["a new one", [[listed(1)]], { updated: 1 }],
  ["the same again", [[listed(1)], [listed(1)], [listed(1)]], { updated: 1, ignored: 2 }],
  ["a later generation", [[listed(1)], [listed(3)]], { updated: 2 }],
  ["one that is deleted", [[listed(1)], []], { updated: 1, deleted: 1 }],
  ["one that is created again", [[listed(1)], [], [listed(1)]], { updated: 2, deleted: 1 }],
  [
    "an invalid one counts each time: alerts use the rate",
    [[listed(1, INVALID)], [listed(1, INVALID)]],
    { invalid: 2 },
  ],
  ["one that is fixed", [[listed(1, INVALID)], [listed(2)]], { invalid: 1, updated: 1 }],
  ["two", [[listed(1), listed(1, INVALID, "other")]], { updated: 1, invalid: 1 }],
];

describe("listed budgets", () => {
  for (const [name, lists, expected] of CASES) {
    it(`${name}: ${JSON.stringify(expected)}`, async () => {
      const metrics = createMetrics();
      const log = createLog({ level: "error", write: () => {}, now: () => new Date(0) });
      const observe = observeBudgets({ log, metrics: metrics.budgets, emitEvents: () => {} });
      for (const list of lists) observe("test", list);
      const counts = [...(await metrics.render()).matchAll(/configurations_observed_total\{result="(\w+)"\} (\d+)/g)];
      assert.deepEqual(Object.fromEntries(counts.map(([, result, count]) => [result, Number(count)])), expected);
    });
  }

  it("an invalid one is logged once per change, and recorded as an Event on it", () => {
    const lines: string[] = [];
    const drafts: Draft[] = [];
    const log = createLog({ level: "info", write: (line) => void lines.push(line), now: () => new Date(0) });
    const observe = observeBudgets({
      log,
      metrics: createMetrics().budgets,
      emitEvents: (some) => void drafts.push(...some),
    });
    for (const generation of [1, 1, 2]) observe("test", [listed(generation, INVALID)]);
    assert.equal(lines.length, 2);
    assert.match(lines.join(), /max unavailable must be 0 <= val, got -1/);
    assert.deepEqual(
      [drafts.length, drafts[0]?.regarding.name, drafts[0]?.reason, drafts[0]?.type],
      [3, "ingester", "BudgetInvalid", "Warning"],
    );
  });

  it("the addition or removal of the CRD is logged once", () => {
    const lines: string[] = [];
    const log = createLog({ level: "info", write: (line) => void lines.push(line), now: () => new Date(0) });
    const observe = observeBudgets({ log, metrics: createMetrics().budgets, emitEvents: () => {} });
    for (const list of [[], undefined, undefined, [], undefined]) observe("test", list);
    assert.deepEqual(
      lines.map((line) => / (off|on)/.exec(line)?.[1]),
      ["off", "on", "off"],
    );
  });
});
