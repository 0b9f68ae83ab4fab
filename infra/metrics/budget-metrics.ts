/** Metrics of disruption budgets, for the webhook and the reconciler alike (§9). */
import { METRICS } from "./tables/metric-table.ts";
import type { Makers } from "./webhook-metrics.ts";

export interface BudgetMetrics {
  /** Counts a decision in progress. */
  deciding<T>(decision: Promise<T>): Promise<T>;
  decided(verdict: { readonly reason: string; readonly status: number }): void;
  /** A budget was read. */
  observed(result: "updated" | "invalid" | "ignored" | "deleted"): void;
}

export function createBudgetMetrics({ counter, gauge }: Pick<Makers, "counter" | "gauge">): BudgetMetrics {
  const evictions = counter(METRICS.evictions);
  const inFlight = gauge(METRICS.evictionsInFlight);
  const observed = counter(METRICS.budgetsObserved);
  return {
    deciding: (decision) => {
      inFlight.inc();
      return decision.finally(() => inFlight.dec());
    },
    decided: ({ reason, status }) => evictions.inc({ reason, status: String(status) }),
    observed: (result) => observed.inc({ result }),
  };
}
