/** A StatefulSet's counts, to the letter of computeReplicaStatus: terminating pods still count as replicas and as ready, but have no revision. */
import { isReady, isTerminating, type Pod, type StatefulSet, type StatefulSetStatus } from "../objects.ts";
import { revisionOf } from "./identity.ts";
import type { Revisions } from "./revisions.ts";

/** Ready for at least `minReadySeconds`. */
export function isAvailable(pod: Pod, minReadySeconds: number, now: number): boolean {
  return isReady(pod) && availableAt(pod, minReadySeconds) <= now;
}

/** When (ms since the epoch) a ready pod becomes available. */
export function availableAt(pod: Pod, minReadySeconds: number): number {
  const since = pod.status.conditions?.find((condition) => condition.type === "Ready")?.lastTransitionTime;
  return minReadySeconds === 0 ? 0 : Date.parse(since ?? "") + minReadySeconds * 1000;
}

export function isRunningAndReady(pod: Pod): boolean {
  return pod.status.phase === "Running" && isReady(pod);
}

/** `condemned` is how many pods this sync deletes for an update: the real controller takes them off currentReplicas at once. */
export function statusOf(set: StatefulSet, pods: readonly Pod[], revisions: Revisions, now: number, condemned: number): StatefulSetStatus {
  const { current, update, collisionCount } = revisions;
  const ready = pods.filter(isRunningAndReady);
  const alive = pods.filter((pod) => !isTerminating(pod));
  const ofRevision = (name: string): number => alive.filter((pod) => revisionOf(pod) === name).length;
  const minReadySeconds = set.spec.minReadySeconds ?? 0;
  return completeRollingUpdate(set, {
    observedGeneration: set.metadata.generation ?? 1,
    replicas: pods.length,
    readyReplicas: ready.length,
    currentReplicas: ofRevision(current.metadata.name) - condemned,
    updatedReplicas: ofRevision(update.metadata.name),
    currentRevision: current.metadata.name,
    updateRevision: update.metadata.name,
    collisionCount,
    availableReplicas: ready.filter((pod) => isAvailable(pod, minReadySeconds, now)).length,
  });
}

/** Whether the set's status needs writing; the collision count alone is no reason, as in the real controller. */
export function differs(before: Partial<StatefulSetStatus> | undefined, after: StatefulSetStatus): boolean {
  const { observedGeneration, collisionCount: _, ...counts } = after;
  if ((observedGeneration ?? 0) > (before?.observedGeneration ?? 0)) return true;
  return Object.entries(counts).some(
    ([field, value]) => (before?.[field as keyof typeof counts] ?? (typeof value === "number" ? 0 : "")) !== value,
  );
}

/** The status without what Go leaves out when empty. */
export function asWritten({ replicas, availableReplicas = 0, collisionCount = 0, ...rest }: StatefulSetStatus): StatefulSetStatus {
  const filled = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== 0 && value !== ""));
  return { ...filled, replicas, availableReplicas, collisionCount };
}

/** Only RollingUpdate ever makes the update revision the current one; with OnDelete the current one stays the first for good. */
function completeRollingUpdate(set: StatefulSet, status: StatefulSetStatus): StatefulSetStatus {
  const { updatedReplicas, readyReplicas, replicas, updateRevision } = status;
  const wanted = set.spec.replicas ?? 1;
  if ((set.spec.updateStrategy?.type ?? "RollingUpdate") !== "RollingUpdate") return status;
  if (updatedReplicas !== wanted || readyReplicas !== wanted || replicas !== wanted || updateRevision === undefined) return status;
  return { ...status, currentReplicas: updatedReplicas, currentRevision: updateRevision };
}
