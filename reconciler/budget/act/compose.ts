/** Composes the parts that ask budgets, shared by the reconciler and the eviction webhook. */
import type { BudgetMetrics } from "../../../infra/metrics/metrics.ts";
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Log } from "../../../infra/log.ts";
import { type CompilePartition, createPartitionCache } from "../partition.ts";
import type { OnBudgets } from "./gather-budget.ts";
import { observeBudgets } from "./observe-budgets.ts";
import { createRecorder, type Recorder } from "../../report/act/recorder.ts";
import { createReserver, type Reserver } from "./reserve.ts";

interface BudgetTools {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: BudgetMetrics;
  /** Names the process: in reservations and Events. */
  readonly identity: string;
}

interface ComposedBudgets extends Pick<Recorder, "emitEvents"> {
  readonly reserver: Reserver;
  readonly onBudgets: OnBudgets;
  /** Shared by all lists of budgets of the process. */
  readonly compilePartition: CompilePartition;
}

export function composeBudgets({ cluster, clock, log, metrics, identity }: BudgetTools): ComposedBudgets {
  const { emitEvents } = createRecorder({ cluster, clock, log, instance: identity });
  const onBudgets = observeBudgets({ log, metrics, emitEvents });
  const compilePartition = createPartitionCache();
  const options = { cluster, clock, by: identity, onBudgets, compilePartition, random: Math.random };
  return { emitEvents, onBudgets, compilePartition, reserver: createReserver(options) };
}
