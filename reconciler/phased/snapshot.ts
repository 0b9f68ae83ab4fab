/** The facts for a decision about one PhasedRollout, and the decisions. */
import type { CheckAnswer } from "../checks/check.ts";
import type { Rule } from "../../infra/rules.ts";
import type { Pod } from "../model/pod.ts";
import type { PhasedRollout } from "./phased-rollout.ts";
import type { PhasedStatus } from "./status.ts";
import type { Target } from "./target.ts";

export interface PhasedSnapshot {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly rollout: PhasedRollout;
  /** Undefined if there is no such StatefulSet. */
  readonly target: Target | undefined;
  /** The PhasedRollout that the StatefulSet names as its owner, if it exists. */
  readonly owner: PhasedRollout | undefined;
  /** The pods of the StatefulSet by their index; empty if they need not be read. */
  readonly pods: ReadonlyMap<number, Pod>;
  /** Prometheus' answer to the check that the last decision asked for. */
  readonly answer?: CheckAnswer;
}

/** A snapshot with a StatefulSet. */
export interface TargetSnapshot extends PhasedSnapshot {
  readonly target: Target;
}

/** Why a partition is written other than to release the next pod. */
export type PartitionReason = "Guard" | "Hold" | "ScaleOut" | "RollBack" | "Contain" | "Restart" | "Suspend";

/** The next decision: at most one write. */
export type PhasedDecision =
  | { readonly action: "addFinalizer" }
  | { readonly action: "dropFinalizer" }
  /**
   * Write our name into the StatefulSet, and the partition that returns with the release, unless it may be that of an
   * earlier claim.
   */
  | { readonly action: "claim"; readonly original: number | undefined }
  /** Give the StatefulSet back; without `partition` it keeps its own. As many outdated `pods` are released by that. */
  | {
      readonly action: "releaseTarget";
      readonly partition: number | undefined;
      readonly pods: number;
      readonly frozen: boolean;
    }
  /** With a `pod`, its disruption budget must allow it: the partition releases it. */
  | {
      readonly action: "setPartition";
      readonly partition: number;
      readonly reason: PartitionReason;
      readonly message: string;
      readonly pod?: Pod;
    }
  /**
   * All checks of the step have passed: lower the partition by one, which releases `pod` unless it is updated already.
   */
  | { readonly action: "releasePod"; readonly partition: number; readonly pod: Pod | undefined }
  | { readonly action: "replacePod"; readonly pod: Pod; readonly asksBudget: boolean; readonly message: string }
  /**
   * Ask Prometheus now, and decide again with its answer. Due since `dueAt` (milliseconds since the epoch); troubled if
   * the last answer was an error.
   */
  | { readonly action: "check"; readonly dueAt: number; readonly isTroubled: boolean }
  /**
   * Nothing but the status; `dueAt` (milliseconds since the epoch) is when the next decision may differ without any
   * change of the cluster.
   */
  | { readonly action: "report"; readonly status: PhasedStatus; readonly dueAt?: number };

export type PhasedRule = Rule<[snapshot: PhasedSnapshot], PhasedDecision>;
export type TargetRule = Rule<[snapshot: TargetSnapshot], PhasedDecision>;
