/** Counts the checks of RolloutGates, or of PhasedRollouts. */
import type { MetricRow } from "./tables/metric-row.ts";
import type { Makers } from "./webhook-metrics.ts";

export interface CheckMetrics {
  /** A check was answered, or not. */
  checked(verdict: "Success" | "Failure" | "Error"): void;
}

export function createCheckMetrics(row: MetricRow, { counter }: Pick<Makers, "counter">): CheckMetrics {
  const checks = counter(row);
  return { checked: (result) => checks.inc({ result }) };
}
