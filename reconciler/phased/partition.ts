/**
 * Keeps the partition at its place whenever no step may lower it: at the replicas while nothing rolls (a new template
 * then releases nothing), and above any scale-out (`HELD`) while a rollout has released no pod, or none that its steps
 * explain.
 */
import type { Pod } from "../model/pod.ts";
import { reportRollout, unchanged, writeTime } from "./report.ts";
import type { PartitionReason, PhasedDecision, TargetRule, TargetSnapshot } from "./snapshot.ts";
import { isSettled } from "./roll-back.ts";
import { finalCheck } from "./decide-step.ts";
import { currentStep, isCheckedAtEnd, isIncurable, isPassed, isUpdated } from "./step.ts";
import { findDownwards, HELD, nameTargetRevision } from "./target.ts";

/** The status of the StatefulSet says nothing about its latest spec. At P = N it would look complete. */
export const statusObserved: TargetRule = (snapshot) => {
  const { rollout, target } = snapshot;
  if (target.observed && target.status.updateRevision !== "") return undefined;
  const { phase } = rollout.status;
  if (phase !== "Updated") return unchanged(snapshot);
  const message = `the StatefulSet controller has not observed the latest spec of ${target.name}`;
  // Nothing has been decided yet about a StatefulSet that was created again.
  const isKnown = rollout.status.targetUID === target.uid;
  return reportRollout(isKnown ? snapshot : { ...snapshot, target: undefined }, {
    phase,
    message,
    updated: ["Unknown", "StatusNotObserved"],
  });
};

/** No pod is released: a pod that a scale-out adds must not be released either. */
export const held: TargetRule = ({ target }) =>
  target.partition >= target.replicas && target.partition !== HELD
    ? setPartition(HELD, "Hold", `no pod of ${target.name} is released yet`)
    : undefined;

/**
 * Replaces a broken pod of neither revision. With OrderedReady the StatefulSet controller updates nothing while a pod
 * is not ready, and no pod below the partition at all: no other controller would ever replace it. Below the partition
 * it returns at the current revision.
 */
export const podsRescued: TargetRule = ({ target, pods }) => {
  const { currentRevision, updateRevision } = target.status;
  const isStranded = ({ health, revision }: Pod): boolean =>
    health.fault !== undefined && revision !== currentRevision && revision !== updateRevision;
  const pod = [...pods.values()].find(isStranded);
  return (
    pod && {
      action: "replacePod",
      pod,
      asksBudget: true,
      message: `${pod.name} cannot come up (${pod.health.fault}) and is of neither revision`,
    }
  );
};

/**
 * Replaces an incurable pod that is released: with OrderedReady the StatefulSet controller waits until it is ready, and
 * so does nothing about it.
 */
export const releasedReplaced: TargetRule = (snapshot) => {
  const { target, pods } = snapshot;
  const isReleased = (index: number): boolean => index >= target.partition && index < target.replicas;
  const [, pod] = [...pods].find(([index, one]) => isReleased(index) && isIncurable(one, snapshot)) ?? [];
  return (
    pod && {
      action: "replacePod",
      pod,
      asksBudget: true,
      message: `${pod.name} does not come up (${pod.health.fault ?? "not ready"}) at the earlier revision, and is released`,
    }
  );
};

/** Nothing rolls. The partition comes first: a new template in between must find it. */
export const idle: TargetRule = (snapshot) => {
  const { rollout, target, now } = snapshot;
  if (!isSettled(snapshot)) return undefined;
  if (target.partition !== target.replicas)
    return setPartition(target.replicas, "Guard", `nothing of ${target.name} rolls`);
  if (isCheckedAtEnd(snapshot)) return finalCheck(snapshot);
  const wasRolling = rollout.status.phase === "Rolling" || rollout.status.phase === "Stalled";
  const message = `all pods of ${target.name} are at revision ${nameTargetRevision(target)}`;
  return reportRollout(snapshot, { phase: "Updated", message, ...(wasRolling && { ended: writeTime(now) }) });
};

/** Another template than the one that rolls, or than the last one: everything begins again. */
export const restarted: TargetRule = ({ rollout, target }) => {
  const { phase, targetUID, updateRevision } = rollout.status;
  const isOurs = targetUID === target.uid && (phase === "Rolling" || phase === "Stalled" || phase === "Updated");
  const isNew = isOurs && updateRevision !== undefined && updateRevision !== target.status.updateRevision;
  if (!isNew || target.partition === HELD) return undefined;
  return setPartition(HELD, "Restart", `${target.name} has another template: revision ${nameTargetRevision(target)}`);
};

/**
 * A partition that no step of ours explains: lower than the stored step's, or 0 without a step, as after an adoption in
 * the middle of a rollout, a change of the strategy and back, or an apply of a manifest that says 0. All pods are kept:
 * those that are not updated yet, and those that a scale-out adds.
 */
export const contained: TargetRule = (snapshot) => {
  const { target, pods } = snapshot;
  if (isExplained(snapshot)) return undefined;
  const highest = findDownwards(pods, target.replicas, (pod) => !isUpdated(target.status.updateRevision, pod));
  if (highest === undefined || highest < target.partition) return undefined;
  return setPartition(HELD, "Contain", `nobody has checked the pods of ${target.name} below index ${highest + 1}`);
};

/**
 * True if the partition is that of the stored step, or a higher one; or if we lowered it to the next outdated pod,
 * after the step was passed.
 */
function isExplained(snapshot: TargetSnapshot): boolean {
  const { target, pods } = snapshot;
  const { partition, status } = target;
  const step = currentStep(snapshot);
  if (!step) return partition > 0;
  const skipped = [...pods].filter(([index]) => index > partition && index < step.partition);
  return (
    partition >= step.partition ||
    (isPassed(snapshot, step) && skipped.every(([, pod]) => pod.revision === status.updateRevision))
  );
}

function setPartition(partition: number, reason: PartitionReason, message: string): PhasedDecision {
  return { action: "setPartition", partition, reason, message };
}
