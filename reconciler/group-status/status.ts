/** The name of a RolloutGroup, and its `status` as it is stored. Times are RFC 3339. */
import type { Condition } from "../../infra/kubernetes/condition.ts";
import type { HoldPhase } from "../model/decision.ts";
import type { WrittenWindow } from "../model/rollout-window.ts";
import { hash } from "../../infra/hash.ts";

export type GroupPhase = "Ready" | HoldPhase;

export interface RolloutGroupStatus {
  /** The generation of the object; the facts of this status are newer than it (§11.2). */
  readonly observedGeneration: number;
  /** The value of the label. */
  readonly group: string;
  readonly phase: GroupPhase;
  /** The present step, or the reason why there is none, in a sentence. */
  readonly message: string;
  /** For the columns of `kubectl get`. */
  readonly summary: GroupSummary;
  readonly zones: readonly ZoneRow[];
  /** What keeps the group from its rollout, then from scaling. */
  readonly holds: readonly StoredHold[];
  /** The remaining steps, in order. */
  readonly plan: readonly RemainingStep[];
  readonly progress?: GroupProgress;
  readonly totals?: GroupTotals;
  readonly conditions: readonly GroupCondition[];
}

export interface GroupSummary {
  /** Zones that are updated and ready, of all: `1/3`. */
  readonly zones: string;
  readonly updated: string;
  readonly ready: string;
  /** The zone in progress. */
  readonly zone?: string;
  /** The reason of the first hold. */
  readonly reason?: string;
  /** What that waits for: `pod/ingester-zone-a-0`. */
  readonly waitsFor?: string;
}

export interface ZoneRow {
  readonly name: string;
  readonly currentRevision: string;
  readonly updateRevision: string;
  /** `spec.replicas`, and the pods that exist, are of the update revision, are ready. */
  readonly replicas: number;
  readonly pods: number;
  readonly updated: number;
  readonly ready: number;
  readonly paused: boolean;
  readonly lastDownscale?: string;
  /** Until when it may begin without its gates, and why. */
  readonly gatesBypassedUntil?: string;
  readonly gatesBypassReason?: string;
  /** The annotations of its rollout window: the time alone decides whether it is open. */
  readonly rolloutWindow?: Partial<WrittenWindow>;
  readonly generation: number;
  readonly observedGeneration: number;
}

/** A hold as it was at the last tick. */
export interface StoredHold {
  readonly reason: string;
  /** Whether it ends by itself or needs somebody. */
  readonly phase: HoldPhase;
  readonly message: string;
  /** Equal as long as the cause is the same. */
  readonly cause: string;
  readonly objects: readonly { readonly kind: string; readonly name: string }[];
  /** The object that it waits for. */
  readonly waitsFor?: { readonly kind: string; readonly name: string };
  readonly since: string;
  /** When the wait is over by time alone; without it, at any change. */
  readonly nextCheck?: string;
}

export interface RemainingStep {
  readonly action: "ReplacePods" | "FinishZone";
  readonly zone: string;
  readonly count?: number;
  readonly atOnce?: number;
  /** The next of them, 10 at most. */
  readonly pods?: readonly string[];
}

/** The progress clock of a group that is not ready, and of its last rollout. */
export interface GroupProgress {
  /** Pods to replace and zones to record. */
  readonly stepsLeft: number;
  readonly startTime: string;
  /** When a pod was last replaced or became ready, or a zone was recorded. */
  readonly lastStepTime: string;
  /** By the pods' own times to become ready: the median of each zone, their mean. */
  readonly secondsPerPod?: number;
  /** Never before the status was written; absent while the group waits. */
  readonly estimatedCompletionTime?: string;
  readonly completionTime?: string;
}

export type ConditionType = "Ready" | "Reconciling" | "Stalled";

export interface GroupCondition extends Condition {
  readonly type: ConditionType;
  readonly status: "True" | "False";
}

/** The counts of a group, over all runs. */
export interface GroupTotals {
  /** Reconciles up to the tick number `passes` of the installation. */
  readonly reconciles: number;
  readonly passes: number;
  readonly failures: number;
  readonly podsReplaced: number;
  /** Reconciles that were timed, and their seconds in all: not those that found a settled group as it was. */
  readonly timed: number;
  /**
   * How many of them took at most 5 ms, 10 ms and so on: the buckets of their histogram; absent where the definition
   * drops them.
   */
  readonly timedWithin?: readonly number[];
  readonly seconds: number;
  /** The last reconcile failed. */
  readonly failing: boolean;
  /** The last reconcile that did not fail, as of the last write. */
  readonly lastSuccessTime?: string;
}

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/**
 * The name of a group's RolloutGroup (§11.1): its own where an object may have it; a label value may also have capitals
 * and underscores, or be empty.
 */
export function nameOfGroup(group: string): string {
  if (SUBDOMAIN.test(group)) return group;
  const readable = group.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return `group-${readable}-${hash(group).toString(16).padStart(8, "0")}`.replaceAll(/-+/g, "-");
}
