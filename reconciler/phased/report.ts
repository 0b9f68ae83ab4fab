/** Builds the status that a decision reports: phase and conditions by one table. */
import { formatTimestamp } from "../../infra/timestamp.ts";
import { type Condition, stampCondition } from "../../infra/kubernetes/condition.ts";
import type { PhasedRollout } from "./phased-rollout.ts";
import type { PhasedStatus, RollingPodStatus } from "./status.ts";
import type { PhasedDecision, PhasedSnapshot } from "./snapshot.ts";

type Truth = Condition["status"];

interface PhaseFacts {
  readonly ready: readonly [Truth, reason: string];
  readonly updated: readonly [Truth, reason: string];
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
  readonly updated?: readonly [Truth, reason: string];
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

/** Reports the outlook. */
export function reportRollout(snapshot: PhasedSnapshot, outlook: PhasedOutlook): PhasedDecision {
  const { rollout } = snapshot;
  const { phase, message, step, dueAt, promotedStep = rememberedStep(rollout) } = outlook;
  const facts: PhaseFacts = PHASES[phase];
  const status: PhasedStatus = {
    observedGeneration: rollout.generation,
    ...describeTarget(snapshot),
    phase,
    promotedStep,
    ...times(snapshot, outlook),
    rollingPodStatus: step,
    conditions: [
      condition(snapshot, { type: "Ready", outcome: facts.ready, message }),
      condition(snapshot, { type: "Updated", outcome: outlook.updated ?? facts.updated, message }),
      ...checksHealthy(snapshot, step),
    ],
  };
  return { action: "report", status, ...(dueAt !== undefined && { dueAt }) };
}

/** Kept as long as the annotation has it: the same value may be set again for a later rollout. */
function rememberedStep({ promoteStep, status: { promotedStep } }: PhasedRollout): string | undefined {
  return promoteStep === promotedStep ? promotedStep : undefined;
}

function describeTarget({ target }: PhasedSnapshot) {
  return {
    targetObservedGeneration: target?.observedGeneration,
    targetUID: target?.uid,
    updateRevision: target?.status.updateRevision || undefined,
  };
}

/** A rollout that begins has no end yet. */
function times({ rollout: { status } }: PhasedSnapshot, { started, ended }: PhasedOutlook) {
  if (started !== undefined) return { rolloutStartTime: started, rolloutEndTime: undefined };
  return { rolloutStartTime: status.rolloutStartTime, rolloutEndTime: ended ?? status.rolloutEndTime };
}

/** Leaves the status as it is. */
export function unchanged({ rollout }: PhasedSnapshot): PhasedDecision {
  return { action: "report", status: rollout.status };
}

interface Finding {
  readonly type: string;
  readonly outcome: readonly [Truth, reason: string];
  readonly message: string;
}

/** The transition time changes only with the status. */
function condition({ rollout, now }: PhasedSnapshot, { type, outcome, message }: Finding): Condition {
  const [status, reason] = outcome;
  return stampCondition(
    { type, status, reason, message },
    { earlier: rollout.status.conditions, generation: rollout.generation, now },
  );
}

/** Present from the first check of a step on. */
function checksHealthy(snapshot: PhasedSnapshot, step: RollingPodStatus | undefined): Condition[] {
  if (step?.lastAttemptTime === undefined) return [];
  const { lastError } = step;
  return [
    lastError === undefined
      ? condition(snapshot, { type: "ChecksHealthy", outcome: ["True", "Answered"], message: "Prometheus answers" })
      : condition(snapshot, { type: "ChecksHealthy", outcome: ["False", "PrometheusError"], message: lastError }),
  ];
}
