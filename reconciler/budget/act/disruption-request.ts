/** Requests to disrupt pods, and the tools that all requests of one process share. */
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { CompilePartition } from "../partition.ts";
import type { DisruptionTarget } from "../scope.ts";
import type { BudgetMemory } from "./budget-memory.ts";
import type { ListedBudget } from "./gather-budget.ts";

export interface DisruptionRequest extends DisruptionTarget {
  readonly namespace: string;
  /** Name of the pod; for a downscale, of the StatefulSet. */
  readonly name: string;
  /** Set for a downscale (§5.11). */
  readonly downscale?: RequestedDownscale;
  /** Set when the rollout asks (§1.5.7). */
  readonly rollout?: { readonly maxUnavailable: number };
  /** Decides, but reserves nothing. */
  readonly dryRun: boolean;
}

export interface RequestedDownscale {
  /** UID of the StatefulSet. */
  readonly uid: string;
  /** The ordinal of the first pod that goes. */
  readonly from: number;
  /** Reserved even if the budget denies it (§2.3). */
  readonly forced: boolean;
  /** The budget to ask: one that selects the StatefulSet. */
  readonly budget: string;
}

export interface TimedDisruptionRequest extends DisruptionRequest {
  /** By `clock.monotonic`, milliseconds. */
  readonly deadlineAt: number;
  readonly signal?: AbortSignal;
}

/** Receives all budgets of a namespace as they were read; undefined if the API server does not know the kind. */
export type OnBudgets = (namespace: string, budgets: readonly ListedBudget[] | undefined) => void;

export interface ReserverTools {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** Signs the reservations. */
  readonly by: string;
  readonly memory: BudgetMemory;
  /** Keeps the patterns of budgets from batch to batch. */
  readonly compilePartition: CompilePartition;
  readonly onBudgets: OnBudgets;
}

/** Milliseconds until the request must be answered, never negative; 0 once its caller has gone. */
export function remaining(
  { deadlineAt, signal }: Pick<TimedDisruptionRequest, "deadlineAt" | "signal">,
  clock: Clock,
): number {
  return signal?.aborted ? 0 : Math.max(0, deadlineAt - clock.monotonic());
}
