/** Puts together what asks budgets: shared by the reconciler and the eviction webhook. */
import type { BudgetMetrics } from "../infra/budget-metrics.ts";
import type { Clock } from "../infra/clock.ts";
import type { Cluster } from "../infra/cluster.ts";
import type { Log } from "../infra/log.ts";
import { writeEvent } from "./act.ts";
import type { OnBudgets } from "./ask.ts";
import { observeBudgets } from "./observe-budgets.ts";
import { createRecorder } from "./recorder.ts";
import { createReserver, type Reserver } from "./reserve.ts";

export interface BudgetTools {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: BudgetMetrics;
  /** Names the process: in reservations and Events. */
  readonly identity: string;
}

const EVENT_MS = 5000;

export function composeBudgets({ cluster, clock, log, metrics, identity }: BudgetTools): { reserver: Reserver; onBudgets: OnBudgets } {
  const recorder = createRecorder({
    write: (event) => writeEvent(cluster, event, { deadlineMs: EVENT_MS }),
    onError: (error, event) => log.warn("an Event could not be written", { reason: event.reason, message: event.message, error }),
    clock,
    instance: identity,
  });
  const onBudgets = observeBudgets({ log, metrics, record: recorder.record });
  return { onBudgets, reserver: createReserver({ cluster, clock, by: identity, onBudgets, random: Math.random }) };
}
