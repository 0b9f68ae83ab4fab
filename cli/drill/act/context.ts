/** The tools of the parts of a drill. */
import type { Clock } from "../../../infra/clock.ts";
import { RolloutError } from "../../../infra/errors.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { History } from "../history.ts";
import type { Run } from "../plan.ts";

export interface Drill {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly history: History;
  readonly run: Run;
  /** A number from 0 up to 1. */
  readonly random: () => number;
  /** Ends all work: fires at the end of the stage, of the drill, or at a Ctrl-C. */
  readonly signal: AbortSignal;
}

/** The HTTP status of a refused call; 0 without an answer. */
export const statusOf = (error: unknown): number => (error instanceof RolloutError ? error.status : undefined) ?? 0;
