/**
 * One step of a rollout: the conditions before the pod below the partition is released.
 *
 *   WaitForPodToBeUpdated -> WaitForAllPodsToBeAvailable -> WaitForInitialDelay -> WaitForChecks <-> PrometheusError -> released
 *            ^--------- a pod is lost: the step begins again ----------------------------------------------'
 *
 * The step is stored in the status; a pod is released only after the status with the last success was written, so that
 * a partition that we lowered can be distinguished from one that another writer lowered.
 */
import { type CheckAnswer, type CheckSpec, dueAt, hasPassed, isInFuture, type Streak } from "../checks/check.ts";
import { nextResult } from "../checks/result.ts";
import { hash } from "../../infra/hash.ts";
import { isOverdue, isReady, isTerminating } from "../model/health.ts";
import type { Pod } from "../model/pod.ts";
import { writeTime } from "./report.ts";
import type { TargetSnapshot } from "./snapshot.ts";
import { findCondition, type RollingPodStatus } from "./status.ts";
import { findUpwards } from "./target.ts";

/** The pods that a step is about. */
export type StepPlace = Pick<RollingPodStatus, "partition" | "replicas">;

/** The beginning of a step. */
export function beginStep(
  { partition, replicas }: StepPlace,
  now: number,
  status = "WaitForPodToBeUpdated",
): RollingPodStatus {
  const counters = { consecutiveSuccessfulChecks: 0, consecutiveFailedChecks: 0, totalFailedChecks: 0 };
  return { status, partition, ...(replicas !== undefined && { replicas }), stepStartTime: writeTime(now), ...counters };
}

/** The step of the status, if it is about this StatefulSet at this revision. */
export function currentStep({ rollout, target }: TargetSnapshot): RollingPodStatus | undefined {
  return isCurrent({ rollout, target }) ? rollout.status.rollingPodStatus : undefined;
}

/** True if the status is about a rollout of this StatefulSet to its update revision. */
export function isCurrent({ rollout, target }: Pick<TargetSnapshot, "rollout" | "target">): boolean {
  const { phase, targetUID, updateRevision } = rollout.status;
  const isRolling = phase === "Rolling" || phase === "Stalled";
  return isRolling && targetUID === target.uid && updateRevision === target.status.updateRevision;
}

/** True if nothing more is asked of the step. */
export function isPassed({ rollout: { check } }: TargetSnapshot, step: RollingPodStatus): boolean {
  return step.promoted === true || hasPassed(check, stepStreak(step));
}

/** True if the rollout that has just updated the last pod is to be checked once more. */
export function isCheckedAtEnd(snapshot: TargetSnapshot): boolean {
  const isRollback = findCondition(snapshot.rollout.status, "Updated")?.reason === "RollingBack";
  return snapshot.rollout.finalCheck && isCurrent(snapshot) && !isRollback && !isFinallyPassed(snapshot);
}

function isFinallyPassed(snapshot: TargetSnapshot): boolean {
  const step = currentStep(snapshot);
  return step?.partition === 0 && isPassed(snapshot, step);
}

/** True if a time of the step is in the future. */
export function isAhead(
  { stepStartTime, analisysStartTime, lastCheckTime, lastAttemptTime }: RollingPodStatus,
  now: number,
): boolean {
  const times = [stepStartTime, analisysStartTime, lastCheckTime, lastAttemptTime];
  return times.some((time) => time !== undefined && isInFuture(Date.parse(time), now));
}

/**
 * True if its results are of another query, or of another meaning of its answers. Thresholds and times apply to the
 * results as they are now.
 */
export function isOfOtherCheck({ rollout: { check } }: TargetSnapshot, step: RollingPodStatus): boolean {
  const { lastAttemptTime, consecutiveSuccessfulChecks, consecutiveFailedChecks } = step;
  const hasResults = lastAttemptTime !== undefined || consecutiveSuccessfulChecks + consecutiveFailedChecks > 0;
  return hasResults && step.checkHash !== hashOf(check);
}

/** The step without its results, and with its promotion: the next check is due at once after the initial delay. */
export function forgetResults({
  status,
  partition,
  replicas,
  stepStartTime,
  analisysStartTime,
  totalFailedChecks,
  promoted,
}: RollingPodStatus): RollingPodStatus {
  const counters = { consecutiveSuccessfulChecks: 0, consecutiveFailedChecks: 0, totalFailedChecks };
  return {
    status: status === "PrometheusError" ? "WaitForChecks" : status,
    partition,
    ...(replicas !== undefined && { replicas }),
    stepStartTime,
    analisysStartTime,
    ...counters,
    ...(promoted && { promoted }),
  };
}

/** The query with everything that its answer depends on. */
export function hashOf({ query, successWhen, baseline }: CheckSpec): string {
  return hash(JSON.stringify([query, successWhen, ...(baseline ? [baseline] : [])])).toString(16);
}

/** True for an outdated pod that serves nothing, and cannot come up at its revision, or has not for 5 minutes. */
export function isIncurable(pod: Pod, { target, now }: Pick<TargetSnapshot, "target" | "now">): boolean {
  const { state } = pod.health;
  const mayComeUp = state === "starting" || state === "recovering";
  return pod.revision !== target.status.updateRevision && (state === "lost" || (mayComeUp && isOverdue(pod, now)));
}

/**
 * The pods that only their release cures: from the highest outdated one below the partition down, those that are
 * incurable at the revision that they have. Their own step would wait for them for ever.
 */
export interface Incurable {
  readonly pods: ReadonlySet<Pod>;
  /** Pods above the lowest of them that its controller makes once that one is ready. */
  readonly unmade: number;
  readonly lowest: number;
  /** The index of the highest of them: the next one to release. */
  readonly next: number;
}

const NONE: Omit<Incurable, "next"> = { pods: new Set(), unmade: 0, lowest: Infinity };

export function findIncurable(snapshot: TargetSnapshot, partition: number): Incurable | undefined {
  const { target, pods, now } = snapshot;
  const { replicas, ordered, status } = target;
  const end = Math.min(partition, replicas);
  const outdated = [...pods]
    .filter(([index, pod]) => index < end && !isUpdated(status.updateRevision, pod))
    .toSorted(([a], [b]) => b - a);
  const other = outdated.findIndex(([, pod]) => !isIncurable(pod, snapshot));
  const found = other < 0 ? outdated : outdated.slice(0, other);
  const [[next, first] = [], [lowest] = []] = [found[0], found.at(-1)];
  if (next === undefined || lowest === undefined || !first) return undefined;
  const unmade = end - lowest - [...pods.keys()].filter((index) => index >= lowest && index < end).length;
  // A pod that is missing for another reason is about to be made at the earlier revision.
  if (unmade > 0 && !(ordered && isOverdue(first, now))) return undefined;
  return { pods: new Set(found.map(([, pod]) => pod)), unmade, lowest, next };
}

/** The pods that the step waits for, without incurable ones; undefined if all are there. */
export function findMissing(
  snapshot: TargetSnapshot,
  partition: number,
  incurable: Omit<Incurable, "next"> = NONE,
): (Pick<RollingPodStatus, "status"> & { message: string }) | undefined {
  const { target, pods } = snapshot;
  const { name, replicas, available, status } = target;
  const nameAt = (index: number): string => `${name}-${target.firstOrdinal + index}`;
  const outdated = findUpwards(pods, [partition, replicas], (pod) => !isUpdated(status.updateRevision, pod));
  if (outdated !== undefined)
    return { status: "WaitForPodToBeUpdated", message: `${nameAt(outdated)} is not updated yet` };
  const isDown = (pod: Pod): boolean => !isReady(pod);
  const below = Math.min(incurable.lowest, replicas);
  const down = findUpwards(pods, [0, below], isDown) ?? findDownAbove(snapshot, incurable, isDown);
  const waiting = { status: "WaitForAllPodsToBeAvailable" };
  if (down !== undefined) return { ...waiting, message: `${nameAt(down)} is not ready` };
  const made = replicas - incurable.unmade;
  const expected = made - incurable.pods.size;
  const isCounted = available === expected && status.replicas === made && status.updated >= replicas - partition;
  return isCounted ? undefined : { ...waiting, message: `${name} has ${available} of ${replicas} pods available` };
}

function findDownAbove(
  { target: { replicas }, pods }: TargetSnapshot,
  { lowest, pods: incurable }: Omit<Incurable, "next">,
  isDown: (pod: Pod) => boolean,
): number | undefined {
  const above = [...pods].filter(([index, pod]) => index >= lowest && index < replicas && !incurable.has(pod));
  return above.find(([, pod]) => isDown(pod))?.[0];
}

/** A pod that exists, stays and is at the update revision. */
export function isUpdated(updateRevision: string, pod: Pod | undefined): pod is Pod {
  return pod !== undefined && !isTerminating(pod) && pod.revision === updateRevision;
}

/** When the next check of the step is due, in milliseconds since the epoch. */
export function nextCheckAt({ rollout: { check } }: Pick<TargetSnapshot, "rollout">, step: RollingPodStatus): number {
  return dueAt(check, timeOf(step.analisysStartTime), stepStreak(step));
}

const timeOf = (text: string | undefined): number => (text === undefined ? Number.POSITIVE_INFINITY : Date.parse(text));

/** The results of the step's checks. */
export function stepStreak(step: RollingPodStatus): Streak {
  return {
    successes: step.consecutiveSuccessfulChecks,
    failures: step.consecutiveFailedChecks,
    errors: step.consecutiveErrors ?? 0,
    lastAt: step.lastAttemptTime === undefined ? undefined : Date.parse(step.lastAttemptTime),
  };
}

/** The step after the answer. An error ends a streak of successes. */
export function countAnswer(
  { rollout: { check } }: TargetSnapshot,
  step: RollingPodStatus,
  answer: CheckAnswer,
): RollingPodStatus {
  const { streak, lastVerdict, message, sample } = nextResult(check, stepStreak(step), { answer });
  const { lastError: _error, lastSample: _sample, consecutiveErrors: _errors, ...rest } = step;
  const counted = {
    ...rest,
    // To the millisecond: a period of a second, counted from the next full one, would take two.
    lastAttemptTime: new Date(answer.at).toISOString(),
    consecutiveSuccessfulChecks: streak.successes,
    consecutiveFailedChecks: streak.failures,
    totalFailedChecks: step.totalFailedChecks + (lastVerdict === "Failure" ? 1 : 0),
    checkHash: hashOf(check),
  };
  if (lastVerdict === "Error")
    return { ...counted, status: "PrometheusError", consecutiveErrors: streak.errors, lastError: message };
  return {
    ...counted,
    status: "WaitForChecks",
    lastCheckTime: writeTime(answer.at),
    ...(sample !== undefined && { lastSample: sample }),
  };
}
