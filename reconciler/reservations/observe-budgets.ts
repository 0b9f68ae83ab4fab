/** Reports on the budgets that were read: what is wrong with each, once a change; that there are none, once; and the metric. */
import type { BudgetMetrics } from "../../infra/metrics/budget-metrics.ts";
import type { Log } from "../../infra/log.ts";
import type { OnBudgets } from "./disruption-request.ts";
import type { ListedBudget } from "./gather-budget.ts";
import type { Draft } from "../report/events.ts";

export interface BudgetObserver {
  readonly log: Log;
  readonly metrics: BudgetMetrics;
  /** Records Events. */
  readonly record: (drafts: readonly Draft[]) => void;
}

export function observeBudgets({ log, metrics, record }: BudgetObserver): OnBudgets {
  /** What was last seen: by namespace, by name, UID and generation. */
  const seen = new Map<string, Map<string, string>>();
  let known = true;

  function observe({ ref, content }: ListedBudget, isNew: boolean): void {
    const problem = "problem" in content ? content.problem : undefined;
    metrics.observed(problem !== undefined ? "invalid" : isNew ? "updated" : "ignored");
    if (problem === undefined) return;
    const message = `no pod that it selects is evicted: ${problem}`;
    record([{ regarding: ref, type: "Warning", reason: "BudgetInvalid", message }]);
    if (isNew) log.error("a disruption budget is not valid", { namespace: ref.namespace, budget: ref.name, problem });
  }

  return (namespace, budgets) => {
    if (known !== (budgets !== undefined)) {
      known = budgets !== undefined;
      log.info(
        known
          ? "disruption budgets are on"
          : "disruption budgets are off: the definition zoneawarepoddisruptionbudgets.rollout-operator.grafana.com is not installed",
      );
    }
    const earlier = seen.get(namespace) ?? new Map<string, string>();
    const now = new Map((budgets ?? []).map((budget) => [budget.ref.name, versionOf(budget)]));
    for (const budget of budgets ?? []) observe(budget, earlier.get(budget.ref.name) !== versionOf(budget));
    for (const name of earlier.keys()) if (!now.has(name)) metrics.observed("deleted");
    seen.set(namespace, now);
  };
}

function versionOf({ ref, object }: ListedBudget): string {
  return `${ref.uid}/${object.metadata.generation}`;
}
