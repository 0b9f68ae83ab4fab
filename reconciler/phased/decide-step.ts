/** Decides within one step of a rollout (§16.5): begin it, wait, check, release the pod below the partition. */
import { firstOf, type Rule } from "../../infra/rules.ts";
import { hasFailed, isOld } from "../checks/check.ts";
import type { PhasedRollout } from "./phased-rollout.ts";
import { type PhasedOutlook, type PhasedRolloutPhase, reportRollout, writeTime } from "./report.ts";
import type { PhasedDecision, TargetRule, TargetSnapshot } from "./snapshot.ts";
import type { RollingPodStatus } from "./status.ts";
import {
  beginStep,
  countAnswer,
  currentStep,
  findIncurable,
  findMissing,
  forgetResults,
  type Incurable,
  isAhead,
  isCurrent,
  isOfOtherCheck,
  isPassed,
  isUpdated,
  nextCheckAt,
  stepStreak,
} from "./step.ts";
import { findStrays, placeOf, strayReturned } from "./scale-out.ts";
import { findDownwards, HELD, nameTargetRevision } from "./target.ts";

type StepRule = Rule<[snapshot: TargetSnapshot, step: RollingPodStatus], PhasedDecision>;

/**
 * The first decision about a rollout is written down before anything else. So is another lowest released pod: we have
 * released a pod, somebody else has set the partition, or the replicas have changed while no pod is released.
 */
const stepBegun: TargetRule = (snapshot) => {
  const { now } = snapshot;
  const place = placeOf(snapshot);
  if (currentStep(snapshot)?.partition === place.partition) return undefined;
  return reportRollout(snapshot, {
    phase: "Rolling",
    message: describe(snapshot),
    step: beginStep(place, now),
    ...(!isCurrent(snapshot) && { started: writeTime(now) }),
    dueAt: now,
  });
};

/** All pods are released: the StatefulSet controller ends the rollout. */
const allReleased: TargetRule = (snapshot) => {
  const { target } = snapshot;
  const step = currentStep(snapshot);
  if (target.partition !== 0 || !step) return undefined;
  const { status, ...outlook } = findMissing(snapshot, 0) ?? { status: "WaitForAllPodsToBeAvailable" };
  return reportStep(snapshot, { ...step, status }, outlook);
};

const inStep: TargetRule = (snapshot) => {
  const step = currentStep(snapshot);
  return step && decideInStep(snapshot, step);
};

const timesPast: StepRule = (snapshot, step) => {
  const { now } = snapshot;
  if (!isAhead(step, now)) return undefined;
  return reportStep(snapshot, { ...beginStep(step, now), ...(step.promoted && { promoted: true }) }, { dueAt: now });
};

/** All pods that a scale-out added have returned: they are judged as the others. */
const allJudged: StepRule = (snapshot, step) => {
  const { replicas } = snapshot.target;
  if (snapshot.target.partition !== HELD || findStrays(snapshot).length > 0 || (step.replicas ?? replicas) === replicas)
    return undefined;
  return reportStep(snapshot, { ...step, replicas }, { dueAt: snapshot.now });
};

/** A pod that came with a scale-out has to return first: below a partition that was lowered it would stay unchecked. */
const incurableOf = (snapshot: TargetSnapshot, { partition }: RollingPodStatus): Incurable | undefined =>
  findStrays(snapshot).length > 0 ? undefined : findIncurable(snapshot, partition);

/** Pods come first, also after a promotion and after the last success: a pod that was lost begins the step again. */
const podsThere: StepRule = (snapshot, step) => {
  const missing = findMissing(snapshot, step.partition, incurableOf(snapshot, step));
  if (!missing) return undefined;
  const { stepStartTime = writeTime(snapshot.now), promoted } = step;
  const { status, message } = missing;
  const again = { ...beginStep(step, snapshot.now, status), stepStartTime, ...(promoted && { promoted }) };
  return reportStep(snapshot, again, { message });
};

/** The user, or the installation's default, asks for another check: no result of the earlier one counts. */
const sameCheck: StepRule = (snapshot, step) =>
  isOfOtherCheck(snapshot, step) ? reportStep(snapshot, forgetResults(step), { dueAt: snapshot.now }) : undefined;

/** A user promotes this step, once. */
const promoted: StepRule = (snapshot, step) => {
  const { rollout, target, now } = snapshot;
  const name = `${target.status.updateRevision}/${step.partition}`;
  if (rollout.promoteStep !== name || rollout.status.promotedStep === name) return undefined;
  return reportStep(snapshot, { ...step, promoted: true }, { promotedStep: name, dueAt: now });
};

/** The last success is more than two periods and a minute ago, as after a budget that denied for long, or a time without a reconciler. */
const successesRecent: StepRule = (snapshot, step) => {
  const { rollout, now } = snapshot;
  const lastAt = Date.parse(step.lastCheckTime ?? "");
  if (step.promoted || !isPassed(snapshot, step) || !isOld(rollout.check, { lastAt }, now)) return undefined;
  return reportStep(snapshot, { ...step, consecutiveSuccessfulChecks: 0 }, { dueAt: now });
};

const passed: StepRule = (snapshot, step) => {
  if (!isPassed(snapshot, step)) return undefined;
  const { target, rollout } = snapshot;
  if (rollout.paused && !step.promoted) return undefined;
  // Pods that are updated already, as after a scale-out, have had their step. Pods that are not made before an incurable
  // one is ready are released with it.
  const outdated =
    incurableOf(snapshot, step)?.next ??
    findDownwards(snapshot.pods, step.partition, (pod) => !isUpdated(target.status.updateRevision, pod));
  return {
    action: "releasePod",
    partition: outdated ?? 0,
    pod: outdated === undefined ? undefined : snapshot.pods.get(outdated),
  };
};

/** A pause makes earlier checks void. */
const paused: StepRule = (snapshot, step) => {
  const { rollout, now } = snapshot;
  return rollout.paused
    ? reportStep(snapshot, beginStep(step, stepTime(step) ?? now, "Paused"), { message: "paused by a user" })
    : undefined;
};

/** It stays so until the template or the check changes, or a user promotes the step or raises the threshold. */
const failed: StepRule = (snapshot, step) => {
  if (!hasFailed(snapshot.rollout.check, stepStreak(step))) return undefined;
  const message = `${step.consecutiveFailedChecks} checks in a row have failed (${step.lastSample ?? "no data"}): the rollout of ${snapshot.target.name} stays at partition ${step.partition}`;
  return reportRollout(snapshot, { phase: "Stalled", message, updated: ["False", "ChecksFailed"], step });
};

const delayBegun: StepRule = (snapshot, step) => {
  if (step.analisysStartTime !== undefined) return undefined;
  const { now } = snapshot;
  // The step of a paused rollout begins when the pause ends.
  const begun = step.status === "Paused" ? beginStep(step, now) : step;
  const next = { ...begun, status: "WaitForInitialDelay", analisysStartTime: writeTime(now) };
  return reportStep(snapshot, next, { dueAt: nextCheckAt(snapshot, next) });
};

const checkDue: StepRule = (snapshot, step) => {
  const { now, answer } = snapshot;
  const dueAt = nextCheckAt(snapshot, step);
  if (now < dueAt) return reportStep(snapshot, step, { dueAt });
  if (!answer) return { action: "check", dueAt, isTroubled: (step.consecutiveErrors ?? 0) > 0 };
  const next = countAnswer(snapshot, step, answer);
  return reportStep(snapshot, next, { dueAt: isPassed(snapshot, next) ? now : nextCheckAt(snapshot, next) });
};

const decideInStep: StepRule = firstOf<[TargetSnapshot, RollingPodStatus], PhasedDecision>([
  timesPast,
  strayReturned,
  allJudged,
  podsThere,
  sameCheck,
  promoted,
  successesRecent,
  passed,
  paused,
  failed,
  delayBegun,
  checkDue,
]);

/** Silent only while nothing rolls. */
export const decideStep: TargetRule = firstOf([stepBegun, allReleased, inStep]);

/** The check after the last pod, as a step of partition 0; the partition itself is at the replicas again. */
export const finalCheck: TargetRule = (snapshot) => {
  const step = currentStep(snapshot);
  return decideInStep(snapshot, step?.partition === 0 ? step : beginStep({ partition: 0 }, snapshot.now));
};

/** Reports a step that continues, or that takes longer than users allow. */
function reportStep(
  snapshot: TargetSnapshot,
  step: RollingPodStatus,
  outlook: Omit<PhasedOutlook, "phase" | "message"> & { message?: string },
): PhasedDecision {
  const { dueAt } = outlook;
  const deadline = deadlineOf(snapshot, step);
  const isLate = deadline !== undefined && snapshot.now >= deadline;
  const phase: PhasedRolloutPhase = isLate ? "Stalled" : "Rolling";
  const soonest = Math.min(dueAt ?? Infinity, isLate ? Infinity : (deadline ?? Infinity));
  return reportRollout(snapshot, {
    ...outlook,
    phase,
    message: isLate ? describeLate(snapshot, step, outlook.message) : (outlook.message ?? describe(snapshot)),
    step,
    ...(isLate && { updated: ["False", "ProgressDeadlineExceeded"] }),
    dueAt: soonest === Infinity ? undefined : soonest,
  });
}

/** The reason for a step that takes too long. */
function describeLate(
  { rollout }: TargetSnapshot,
  step: RollingPodStatus,
  why = describeChecks(rollout, step),
): string {
  return `the step at partition ${step.partition} takes longer than ${rollout.progressDeadlineSeconds} s: ${why}`;
}

function describeChecks({ check }: PhasedRollout, step: RollingPodStatus): string {
  const { lastError, lastSample, consecutiveFailedChecks: bad } = step;
  if (lastError !== undefined) return `Prometheus does not answer (${lastError})`;
  if (bad > 0) return `the last check has failed (${lastSample ?? "no data"})`;
  return `the check has not passed ${check.successThreshold} times in a row`;
}

/** Milliseconds since the epoch; none without a limit, and while a user has paused. */
function deadlineOf({ rollout }: TargetSnapshot, step: RollingPodStatus): number | undefined {
  const begin = stepTime(step);
  if (rollout.progressDeadlineSeconds === undefined || begin === undefined || rollout.paused) return undefined;
  return begin + rollout.progressDeadlineSeconds * 1000;
}

const stepTime = ({ stepStartTime }: RollingPodStatus): number | undefined =>
  stepStartTime === undefined ? undefined : Date.parse(stepStartTime);

function describe({ target }: TargetSnapshot): string {
  return `StatefulSet ${target.name} rolls to revision ${nameTargetRevision(target)}`;
}
