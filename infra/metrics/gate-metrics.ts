/** Metrics of RolloutGates. */
import { METRICS } from "./tables/metric-table.ts";
import type { Makers } from "./webhook-metrics.ts";

export interface GateMetrics {
  /** A check was answered. */
  checked(verdict: "Success" | "Failure" | "Error"): void;
}

export function createGateMetrics({ counter }: Pick<Makers, "counter">): GateMetrics {
  const checks = counter(METRICS.gateChecks);
  return { checked: (result) => checks.inc({ result }) };
}
