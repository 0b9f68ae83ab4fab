/** What is asked of budgets, and what an attempt at an answer comes to. */
import type { Clock } from "../infra/clock.ts";
import type { Cluster } from "../infra/cluster.ts";
import type { Reservation } from "./budget/reservation.ts";
import type { Verdict } from "./budget/verdict.ts";
import type { ListedBudget } from "./gather-budget.ts";
import type { Freshness } from "./gather.ts";

/** A pod that someone wants to disrupt. */
export interface Ask {
  readonly namespace: string;
  readonly name: string;
  /** Set when the rollout asks [1.5.7]. */
  readonly rollout?: { readonly maxUnavailable: number };
  /** Decides, but reserves nothing. */
  readonly dryRun: boolean;
}

/** A reservation, and where to find it. */
export interface Held extends Reservation {
  readonly namespace: string;
  readonly budget: string;
  readonly pod: string;
}

export type Attempt =
  | { readonly state: "decided"; readonly verdict: Verdict; readonly held?: Held }
  /** Somebody else has written meanwhile: all is to be gathered anew. */
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
  /** UIDs of budgets whose status does not keep reservations. */
  readonly leased: Set<string>;
  readonly onBudgets: OnBudgets;
}

export const decided = (said: Verdict): Attempt => ({ state: "decided", verdict: said });
