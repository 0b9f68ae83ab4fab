/** The metrics of disruption budgets (§9). */
import type { MetricRow } from "./metric-row.ts";

export const BUDGET_METRICS = {
  evictions: {
    name: "rollout_operator_zpdb_eviction_requests_total",
    type: "counter",
    help: "Decisions of disruption budgets, for evictions and for the rollout.",
    kept: "shared",
    labels: ["reason", "status"],
  },
  evictionsInFlight: {
    name: "rollout_operator_zpdb_inflight_eviction_requests",
    type: "gauge",
    help: "Decisions of disruption budgets that are being made.",
    labels: [],
  },
  budgetsObserved: {
    name: "rollout_operator_zpdb_configurations_observed_total",
    type: "counter",
    help: "Disruption budgets that were read.",
    kept: "shared",
    labels: ["result"],
  },
} as const satisfies Readonly<Record<string, MetricRow>>;
