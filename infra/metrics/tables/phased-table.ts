/** The metrics of PhasedRollouts. */
import type { MetricRow } from "./metric-row.ts";

export const PHASED_METRICS = {
  phasedPhase: {
    name: "zonewise_phased_rollout_phase",
    type: "gauge",
    help: "1 for the phase of a PhasedRollout.",
    labels: ["namespace", "phased_rollout", "phase"],
    foreign: true,
  },
  phasedChecks: {
    name: "zonewise_phased_rollout_checks_total",
    type: "counter",
    help: "Checks of PhasedRollouts, by their result.",
    labels: ["result"],
    kept: "alone",
  },
} as const satisfies Readonly<Record<string, MetricRow>>;
