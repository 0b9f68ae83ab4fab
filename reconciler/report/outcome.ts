/** What one tick came to for one group, and for all. */
import type { RolloutError } from "../../infra/errors.ts";
import type { ZoneList } from "../gather.ts";
import { factsOf, type Hold } from "../model/decision.ts";
import type { Pod } from "../model/pod.ts";
import type { Zone } from "../model/zone.ts";
import type { DeletePods, FinishZone } from "../rollout/zone.ts";
import type { ScaleZone } from "../scaling/steps.ts";

/** A decision to act. */
export type Action = DeletePods | FinishZone | ScaleZone;

/** The effect of an action. */
export interface Effect {
  readonly replaced: readonly Pod[];
  /** Holds of chosen pods that were not deleted. */
  readonly denied: readonly Hold[];
  /** Why the rest of the batch was left to the next tick, if it was. */
  readonly stopped?: string;
}

/** Something worth a log line that changes nothing. */
export interface LogNote {
  readonly level: "info" | "warn";
  readonly text: string;
}

export interface Common {
  readonly namespace: string;
  readonly group: string;
  /** Without their pods: those of all groups together would be kept until the tick is over. */
  readonly zones: readonly Zone[];
  /** Why zones of it were not scaled; the rollout goes on beside it. */
  readonly scalingHolds: readonly Hold[];
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

/** What one tick came to. */
export interface TickResult extends ZoneList {
  readonly outcomes: readonly Outcome[];
  /** Groups that the end came before. */
  readonly skipped: number;
  /** Something was written: the next tick follows at once. */
  readonly acted: boolean;
}

/** From this many ticks in a row on, being superseded counts as failing. */
const SUPERSEDED_TOO_OFTEN = 10;

/** True if someone should look into it: the group counts as failed, and so does the run if its last tick says so. */
export function isFailure(outcome: Outcome): boolean {
  if (outcome.state === "held") return factsOf(outcome.hold.reason).fails === true;
  return outcome.state === "failed" || (outcome.state === "superseded" && outcome.times >= SUPERSEDED_TOO_OFTEN);
}

/** All that holds the group back: its rollout, then its zones' scaling. */
export function holdsOf(outcome: Outcome): Hold[] {
  return [...(outcome.state === "held" ? [outcome.hold] : []), ...outcome.scalingHolds];
}
