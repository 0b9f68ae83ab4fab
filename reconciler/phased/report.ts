/** Builds the status that a decision reports: phase and conditions by one table. */
import { formatTimestamp } from "../../infra/timestamp.ts";
import { type Condition, stampCondition } from "../../infra/kubernetes/condition.ts";
import type { PhasedRollout } from "./phased-rollout.ts";
import type { PhasedStatus, RollingPodStatus } from "./status.ts";
import type { PhasedDecision, PhasedSnapshot } from "./snapshot.ts";

type Outcome = readonly [status: Condition["status"], reason: string];

interface PhaseFacts {
  readonly ready: Outcome;
  readonly updated: Outcome;
}

const PHASES = {
  ErrorSTSNotFound: { ready: ["False", "ErrorSTSNotFound"], updated: ["Unknown", "ErrorSTSNotFound"] },
  ErrorCannotManage: { ready: ["False", "ErrorCannotManage"], updated: ["Unknown", "ErrorCannotManage"] },
  Suspended: { ready: ["True", "Suspended"], updated: ["Unknown", "Suspended"] },
  Rolling: { ready: ["True", "Ready"], updated: ["False", "Rolling"] },
  Stalled: { ready: ["True", "Ready"], updated: ["False", "Stalled"] },
  Updated: { ready: ["True", "Ready"], updated: ["True", "Updated"] },
} as const satisfies Record<string, PhaseFacts>;

export type PhasedRolloutPhase = keyof typeof PHASES;

export interface PhasedOutlook {
  readonly phase: PhasedRolloutPhase;
  /** A sentence for users; equal as long as nothing has changed. */
  readonly message: string;
  /** Condition `Updated`, where the phase alone does not tell. */
  readonly updated?: Outcome;
  /** The step; none outside a rollout. */
  readonly step?: RollingPodStatus;
  readonly started?: string;
  readonly ended?: string;
  readonly promotedStep?: string;
  readonly dueAt?: number | undefined;
}

/** Rounded up to the second: a wait that is counted from it is never too short. */
export function writeTime(ms: number): string {
  return formatTimestamp(Math.ceil(ms / 1000) * 1000);
}

export function reportRollout(snapshot: PhasedSnapshot, outlook: PhasedOutlook): PhasedDecision {
  const { rollout, target, now } = snapshot;
  const { phase, message, step, dueAt, promotedStep = rememberedStep(rollout) } = outlook;
  const { ready, updated }: PhaseFacts = PHASES[phase];
  const stamp = { earlier: rollout.status.conditions, generation: rollout.generation, now };
  const conditions: readonly (readonly [type: string, outcome: Outcome, message: string])[] = [
    ["Ready", ready, message],
    ["Updated", outlook.updated ?? updated, message],
    ...checksHealthy(step),
  ];
  const status: PhasedStatus = {
    observedGeneration: rollout.generation,
    targetObservedGeneration: target?.observedGeneration,
    targetUID: target?.uid,
    updateRevision: target?.status.updateRevision || undefined,
    phase,
    promotedStep,
    ...times(rollout.status, outlook),
    rollingPodStatus: step,
    conditions: conditions.map(([type, [truth, reason], text]) =>
      stampCondition({ type, status: truth, reason, message: text }, stamp),
    ),
  };
  return { action: "report", status, ...(dueAt !== undefined && { dueAt }) };
}

/** Kept as long as the annotation has it: the same value may be set again for a later rollout. */
function rememberedStep({ promoteStep, status: { promotedStep } }: PhasedRollout): string | undefined {
  return promoteStep === promotedStep ? promotedStep : undefined;
}

/** A rollout that begins has no end yet. */
function times(before: PhasedStatus, { started, ended }: PhasedOutlook) {
  if (started !== undefined) return { rolloutStartTime: started, rolloutEndTime: undefined };
  return { rolloutStartTime: before.rolloutStartTime, rolloutEndTime: ended ?? before.rolloutEndTime };
}

/** Leaves the status as it is. */
export function unchanged({ rollout }: PhasedSnapshot): PhasedDecision {
  return { action: "report", status: rollout.status };
}

/** Present from the first check of a step on. */
function checksHealthy(step: RollingPodStatus | undefined): (readonly [string, Outcome, string])[] {
  if (step?.lastAttemptTime === undefined) return [];
  return step.lastError === undefined
    ? [["ChecksHealthy", ["True", "Answered"], "Prometheus answers"]]
    : [["ChecksHealthy", ["False", "PrometheusError"], step.lastError]];
}
