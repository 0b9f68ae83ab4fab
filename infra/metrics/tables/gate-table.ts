/** The metrics of RolloutGates. */
import type { MetricRow } from "./metric-row.ts";

export const GATE_METRICS = {
  gateChecks: {
    name: "zonewise_gate_checks_total",
    type: "counter",
    help: "Checks of RolloutGates, by their result.",
    labels: ["result"],
    kept: "alone",
  },
} as const satisfies Readonly<Record<string, MetricRow>>;
