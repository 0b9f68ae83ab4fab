/** What one tick came to for one group, and for all. */
import type { RolloutError } from "../../infra/errors.ts";
import type { Action, Effect, LogNote } from "../actor.ts";
import { factsOf, type Hold } from "../model/decision.ts";
import type { Zone } from "../model/zone.ts";

export interface Common {
  readonly namespace: string;
  readonly group: string;
  /** Without their pods: those of all groups together would be kept until the tick is over. */
  readonly zones: readonly Zone[];
  /** Why zones of it were not scaled; the rollout goes on beside it. */
  readonly waits: readonly Hold[];
  /** What is worth a line besides. */
  readonly notes: readonly LogNote[];
}

export type Outcome = Common &
  (
    | { readonly state: "settled" }
    | { readonly state: "held"; readonly hold: Hold }
    | { readonly state: "acted"; readonly decision: Action; readonly effect: Effect }
    /** Something changed between judging and acting; nothing was done, and the next tick decides again. */
    | { readonly state: "superseded"; readonly error: RolloutError; readonly times: number }
    | { readonly state: "failed"; readonly error: unknown }
  );

/** From this many ticks in a row on, being superseded counts as failing. */
const SUPERSEDED_TOO_OFTEN = 10;

/** True if someone should look into it: the group counts as failed, and so does the run if its last tick says so. */
export function isFailure(outcome: Outcome): boolean {
  if (outcome.state === "held") return factsOf(outcome.hold.reason).fails === true;
  return outcome.state === "failed" || (outcome.state === "superseded" && outcome.times >= SUPERSEDED_TOO_OFTEN);
}

/** All that holds the group back: its rollout, then its zones' scaling. */
export function holdsOf(outcome: Outcome): Hold[] {
  return [...(outcome.state === "held" ? [outcome.hold] : []), ...outcome.waits];
}
