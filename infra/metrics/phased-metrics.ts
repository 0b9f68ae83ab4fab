/** Metrics of PhasedRollouts. */
import { METRICS } from "./tables/metric-table.ts";
import type { Makers } from "./webhook-metrics.ts";

interface Named {
  readonly namespace: string;
  readonly name: string;
}

export interface PhasedMetrics {
  /** A check was answered, or not. */
  checked(verdict: "Success" | "Failure" | "Error"): void;
  phase(rollout: Named, phase: string): void;
  /** Drops the series of every PhasedRollout that is not among `living`. */
  keep(living: readonly Named[]): void;
}

/** PhasedRollouts with a series; further ones have none. */
export const MAX_PHASED = 1000;

export function createPhasedMetrics({ counter, gauge }: Pick<Makers, "counter" | "gauge">): PhasedMetrics {
  const checks = counter(METRICS.phasedChecks);
  const phases = gauge(METRICS.phasedPhase);
  const shown = new Map<string, { readonly namespace: string; readonly phased_rollout: string; readonly phase: string }>();
  const keyOf = ({ namespace, name }: Named): string => `${namespace}/${name}`;

  function drop(key: string): void {
    const labels = shown.get(key);
    if (labels) phases.remove(labels);
    shown.delete(key);
  }

  return {
    checked: (verdict) => checks.inc({ result: verdict }),
    phase(rollout, phase) {
      const key = keyOf(rollout);
      if (shown.get(key)?.phase === phase) return;
      drop(key);
      if (phase === "" || shown.size >= MAX_PHASED) return;
      const labels = { namespace: rollout.namespace, phased_rollout: rollout.name, phase };
      shown.set(key, labels);
      phases.set(labels, 1);
    },
    keep(living) {
      const kept = new Set(living.map(keyOf));
      for (const key of shown.keys()) if (!kept.has(key)) drop(key);
    },
  };
}
