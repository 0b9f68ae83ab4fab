/** The input of a run, and its result. */
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import type { LeaseOptions } from "../../infra/kubernetes/lease-succession.ts";
import type { Log } from "../../infra/log.ts";
import type { Metrics } from "../../infra/metrics/metrics.ts";
import type { Tracer } from "../../infra/tracing/tracer.ts";
import type { CaInjection } from "./ca-injection.ts";
import type { UpdateNodes } from "../nodes/act/update-nodes.ts";
import type { ConcludeDownscales } from "../downscale/act/conclude-downscales.ts";
import type { GroupMemory } from "../report/memory.ts";
import type { TickResult } from "../model/outcome.ts";
import type { BudgetStatuses } from "../group-status/act/budget-statuses.ts";
import type { TickInput } from "./tick.ts";

export interface RunInput {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Without one, nothing is recorded. */
  readonly tracer?: Tracer;
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
  /** Goes on beside the ticks. */
  readonly caInjection: CaInjection;
  /** Done before each tick. */
  readonly concludeDownscales: ConcludeDownscales;
  /** Done after each tick; undefined if this installation updates no nodes. */
  readonly updateNodes?: UpdateNodes | undefined;
  readonly intervalMs: number;
  readonly budgetMs: number;
  readonly lease: LeaseOptions;
  readonly scaling: Omit<TickInput["scaling"], "notifier">;
  readonly budgets: TickInput["budgets"];
  readonly budgetStatuses: Pick<BudgetStatuses, "write">;
  readonly checking: TickInput["checking"];
  readonly phased: TickInput["phased"];
  /** Ends the run after the current step. */
  readonly stop: AbortSignal;
  /** Ticks once and ends, as a function call does. */
  readonly once?: boolean;
  /** The memory of a process from run to run: since when groups have been held. */
  readonly memory?: Map<string, GroupMemory>;
}

export interface RunResult {
  /** 0; or 1 if the last tick failed for some group or as a whole, or if each Lease was lost before a tick. */
  readonly exitCode: 0 | 1;
  /** The last tick that read the cluster; undefined if the Lease was never ours or the cluster never answered. */
  readonly last: TickResult | undefined;
}
