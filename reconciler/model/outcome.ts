/** The actions of a tick on a group, and the outcome for one group and for all. */
import type { RolloutError } from "../../infra/errors.ts";
import { factsOf, type Hold } from "./decision.ts";
import type { Pod } from "./pod.ts";
import type { Bypass, Zone, ZoneList, ZoneWithPods } from "./zone.ts";

/** Delete these pods of the zone, so that they come back at its update revision. */
export interface DeletePods {
  readonly action: "deletePods";
  readonly zone: ZoneWithPods;
  readonly pods: readonly Pod[];
  readonly message: string;
  /** None of them serves: the state of other zones does not matter. */
  readonly serveNothing?: true;
}

/**
 * All pods of the zone are updated and ready: record it as `status.currentRevision`, which the StatefulSet controller
 * does under OnDelete only since Kubernetes 1.37, and then mostly before us.
 */
export interface FinishZone {
  readonly action: "finishZone";
  readonly zone: ZoneWithPods;
  readonly message: string;
}

/** Give the zone this many replicas. */
export interface ScaleZone {
  readonly action: "scaleZone";
  readonly zone: Zone;
  readonly replicas: number;
  /** The time to write as `last-downscale`, in milliseconds since the epoch, if the group has a minimum time. */
  readonly recordAt?: number;
  readonly message: string;
}

type Action = DeletePods | FinishZone | ScaleZone;

export interface Effect {
  readonly replaced: readonly Pod[];
  /** Holds of chosen pods that were not deleted. */
  readonly denied: readonly Hold[];
  /** Why the batch ended early, if it did; the next tick continues it. */
  readonly stopped?: string;
}

/** A log line that is no decision and no failure. */
export interface LogNote {
  readonly level: "info" | "warn";
  readonly text: string;
}

/** A zone with pods to replace, or to be recorded as finished. */
export interface RemainingZone {
  readonly zone: string;
  /** Outdated pods. */
  readonly count: number;
  /** The next of them by name, as far as the pods were read. */
  readonly pods: readonly string[];
  /** The most pods that are replaced at once. */
  readonly atOnce: number;
  /** The number of batches in which they are replaced, if batches grow; otherwise it follows from `atOnce`. */
  readonly batches?: number;
  /** How long a pod of the zone took to become ready, in milliseconds; undefined if none shows it. */
  readonly msPerPod: number | undefined;
}

export interface Common {
  readonly namespace: string;
  readonly group: string;
  /** Without their pods: otherwise the pods of all groups would stay in memory until the tick ends. */
  readonly zones: readonly Zone[];
  /** Why zones of the group were not scaled; they do not stop the rollout. */
  readonly scalingHolds: readonly Hold[];
  /** Zones that may begin without their gates. */
  readonly bypasses?: readonly Bypass[];
  readonly notes: readonly LogNote[];
  /** The rest of the rollout before this tick; undefined if the pods were not read. */
  readonly remaining?: readonly RemainingZone[];
}

/** The result of one tick for a group. */
export type GroupResult =
  | { readonly state: "settled" }
  | { readonly state: "held"; readonly hold: Hold }
  | { readonly state: "acted"; readonly decision: Action; readonly effect: Effect }
  /** The group changed between the decision and the write; nothing was written, and the next tick decides again. */
  | { readonly state: "superseded"; readonly error: RolloutError; readonly times: number }
  | { readonly state: "failed"; readonly error: unknown };

export type Outcome = Common & GroupResult;

export interface TickResult extends ZoneList {
  /** The outcomes of the steps that have ended since the tick before. */
  readonly outcomes: readonly Outcome[];
  /** Groups that were not reached before the tick ended. */
  readonly skipped: number;
  /** Steps that continue in the background. */
  readonly underWay: number;
  /** True if an action was taken, or a gate has opened: the next tick follows at once. */
  readonly acted: boolean;
  /** When the next check is due, milliseconds since the epoch; undefined without any. */
  readonly nextCheckAt?: number | undefined;
  /** The lists of PhasedRollouts; none if they could not be read. */
  readonly phasedLists?: readonly PhasedList[] | undefined;
  /** True if a PhasedRollout could not be read or written. */
  readonly phasedFailed?: boolean;
}

/** The versions from which the PhasedRollouts of a namespace ("" for all) and their StatefulSets are watched. */
export interface PhasedList {
  readonly namespace: string;
  /** Versions of the lists. */
  readonly rolloutsAt: string;
  /** Undefined without PhasedRollouts. */
  readonly targetsAt?: string | undefined;
  /** The StatefulSets, by `<namespace>/<name>`, whether they exist or not. */
  readonly targets: readonly string[];
}

/** A group that is superseded in so many ticks in a row counts as failed. */
const SUPERSEDED_TOO_OFTEN = 10;

/** True if the group counts as failed and needs attention. A failed group in the last tick fails the run. */
export function isFailure(outcome: Outcome): boolean {
  if (outcome.state === "held") return factsOf(outcome.hold.reason).fails === true;
  return outcome.state === "failed" || (outcome.state === "superseded" && outcome.times >= SUPERSEDED_TOO_OFTEN);
}

/** True if the tick has left the group out: nothing was decided about it. */
export const isLeftOut = (outcome: Outcome): boolean =>
  outcome.state === "held" && outcome.hold.reason === "TurnAwaited";

/** All holds of the group: of its rollout, then of the scaling of its zones. */
export function holdsOf(outcome: Outcome): Hold[] {
  return [...(outcome.state === "held" ? [outcome.hold] : []), ...outcome.scalingHolds];
}
