/**
 * Keeps the partition where it must be whenever no step may lower it: at the replicas while nothing rolls (a new template then releases nothing), at
 * most at the replicas, and above every outdated pod if somebody else lowered it.
 */
import type { Pod } from "../model/pod.ts";
import { report, unchanged, writeTime } from "./report.ts";
import type { PartitionReason, PhasedDecision, TargetRule, TargetSnapshot } from "./snapshot.ts";
import { isSettled } from "./roll-back.ts";
import { finalCheck, isCheckedAtEnd } from "./decide-step.ts";
import { currentStep, isPassed, isUpdated } from "./step.ts";

/** The status of the StatefulSet says nothing about its latest spec. At P = N it would look complete. */
export const statusObserved: TargetRule = (snapshot) => {
  const { rollout, target } = snapshot;
  if (target.observed && target.status.updateRevision !== "") return undefined;
  const { phase } = rollout.status;
  if (phase !== "Updated") return unchanged(snapshot);
  const message = `the StatefulSet controller has not observed the latest spec of ${target.name}`;
  return report(snapshot, { phase, message, updated: ["Unknown", "StatusNotObserved"] });
};

/** After a downscale: no step waits for a pod that is gone. */
export const partitionWithinReplicas: TargetRule = ({ target }) =>
  target.partition > target.replicas
    ? setPartition(target.replicas, "Shrink", `${target.name} has ${target.replicas} replicas`)
    : undefined;

/**
 * Replaces a broken pod of neither revision. With OrderedReady the StatefulSet controller updates nothing while a pod is not ready, and no pod below
 * the partition at all: nobody else would ever replace it. Below the partition it returns at the current revision.
 */
export const podsRescued: TargetRule = ({ target, pods }) => {
  const { currentRevision, updateRevision } = target.status;
  const isLost = (pod: Pod): boolean => pod.broken !== undefined && pod.revision !== currentRevision && pod.revision !== updateRevision;
  const pod = [...pods.values()].find(isLost);
  return (
    pod && { action: "replacePod", pod, asksBudget: true, message: `${pod.name} cannot come up (${pod.broken}) and is of neither revision` }
  );
};

/** Nothing rolls. The partition comes first: a new template in between must find it. */
export const idle: TargetRule = (snapshot) => {
  const { rollout, target, now } = snapshot;
  const { updateRevision } = target.status;
  if (!isSettled(snapshot)) return undefined;
  if (target.partition !== target.replicas) return setPartition(target.replicas, "Guard", `nothing of ${target.name} rolls`);
  if (isCheckedAtEnd(snapshot)) return finalCheck(snapshot);
  const wasRolling = rollout.status.phase === "Rolling" || rollout.status.phase === "Stalled";
  const message = `all pods of ${target.name} are at revision ${updateRevision}`;
  return report(snapshot, { phase: "Updated", message, ...(wasRolling && { ended: writeTime(now) }) });
};

/** Another template than the one that rolls, or than the last one: everything begins again. */
export const restarted: TargetRule = ({ rollout, target }) => {
  const { phase, targetUID, updateRevision } = rollout.status;
  const isOurs = targetUID === target.uid && (phase === "Rolling" || phase === "Stalled" || phase === "Updated");
  const isNew = isOurs && updateRevision !== undefined && updateRevision !== target.status.updateRevision;
  if (!isNew || target.partition === target.replicas) return undefined;
  return setPartition(target.replicas, "Restart", `${target.name} has another template: revision ${target.status.updateRevision}`);
};

/**
 * A partition that no step of ours explains: lower than the stored step's, or 0 without a step, as after an adoption in the middle of a rollout, a change
 * of the strategy and back, or an apply of a manifest that says 0. The pods that are not updated yet are kept.
 */
export const contained: TargetRule = (snapshot) => {
  const { target } = snapshot;
  if (isExplained(snapshot)) return undefined;
  const partition = containingPartition(snapshot);
  return partition <= target.partition
    ? undefined
    : setPartition(partition, "Contain", `nobody has checked the pods of ${target.name} below index ${partition}`);
};

/** It is that of the stored step, or a higher one; or we lowered it by one, with all that the step asks for. */
function isExplained(snapshot: TargetSnapshot): boolean {
  const { partition } = snapshot.target;
  const step = currentStep(snapshot);
  if (!step) return partition > 0;
  return partition >= step.partition || (partition === step.partition - 1 && isPassed(snapshot, step));
}

/** One above the highest index whose pod is not updated. */
function containingPartition({ target, pods }: TargetSnapshot): number {
  const indexes = Array.from({ length: target.replicas }, (_, index) => index);
  return (indexes.findLast((index) => !isUpdated(target.status.updateRevision, pods.get(index))) ?? -1) + 1;
}

function setPartition(partition: number, reason: PartitionReason, message: string): PhasedDecision {
  return { action: "setPartition", partition, reason, message };
}
