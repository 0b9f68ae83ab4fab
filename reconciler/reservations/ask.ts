/** What is asked of budgets, and what an attempt at an answer comes to. */
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import type { LastLook } from "../budget/last-look.ts";
import type { Reservation } from "../budget/reservation.ts";
import type { Reach } from "../budget/scope.ts";
import type { Verdict } from "../budget/verdict.ts";
import type { Freshness } from "../freshness.ts";
import type { ListedBudget } from "./gather-budget.ts";

/** A pod that someone wants to disrupt. */
export interface Ask extends Reach {
  readonly namespace: string;
  readonly name: string;
  /** Set when the rollout asks (§1.5.7). */
  readonly rollout?: { readonly maxUnavailable: number };
  /** Decides, but reserves nothing. */
  readonly dryRun: boolean;
}

/** An ask that has to be answered in time. */
export interface TimedAsk extends Ask {
  /** By `clock.monotonic`, milliseconds. */
  readonly deadlineAt: number;
  readonly signal?: AbortSignal;
}

/** A reservation, and where to find it. */
export interface Held extends Reservation {
  readonly namespace: string;
  readonly budget: string;
  readonly pod: string;
}

export type Attempt =
  | { readonly state: "decided"; readonly verdict: Verdict; readonly held?: Held }
  /** Somebody else has written meanwhile, or the cluster did not answer: everything is gathered again. */
  | { readonly state: "outrun"; readonly error?: unknown }
  /** Only now it is known where to look: again, without a pause. */
  | { readonly state: "learned" };

/** Told of all budgets of a namespace as they were read; undefined if the cluster does not know the kind. */
export type OnBudgets = (namespace: string, budgets: readonly ListedBudget[] | undefined) => void;

export interface Desk {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** Signs the reservations. */
  readonly by: string;
  readonly freshness: Freshness;
  /** By `<namespace>/<StatefulSet>`, the budget that its pods were last under, "" for none. A hint: a wrong one costs calls, nothing else. */
  readonly hints: Map<string, string>;
  /** By `<namespace>/<budget>`, what was unavailable when it was last looked at. A hint, too. */
  readonly looks: Map<string, LastLook>;
  /** UIDs of budgets whose status does not keep reservations. */
  readonly leased: Set<string>;
  readonly onBudgets: OnBudgets;
}

export const decided = (said: Verdict): Attempt => ({ state: "decided", verdict: said });

export const budgetKey = (namespace: string, budget: string): string => `${namespace}/${budget}`;

/** Milliseconds until the ask has to be answered, never negative; none once its caller has gone. */
export function remaining({ deadlineAt, signal }: TimedAsk, clock: Clock): number {
  return signal?.aborted ? 0 : Math.max(0, deadlineAt - clock.monotonic());
}
