/**
 * What the StatefulSet controller does with pods in one sync, as a pure function (updateStatefulSet in
 * stateful_set_control.go):
 *   1. every ordinal in turn: failed -> delete, missing -> create
 *   2. pods beyond the ordinals: delete, highest first
 *   3. RollingUpdate: delete the highest outdated pod, once those above it are available; with `maxUnavailable`, which
 *      only the feature MaxUnavailableStatefulSet stores, as many as may be unavailable
 * OrderedReady stops at the first unhealthy pod; Parallel does not wait in 1 and 2.
 */
import { type Draft, put } from "../../objects.ts";
import { controllerReference, hasEnded, isReady, isTerminating } from "../objects.ts";
import type { Pod, Revision, StatefulSet, StatefulSetStatus } from "../objects.ts";
import type { Revisions } from "./revisions.ts";

/**
 * Returns the pods to create, to remove, and to label again. `pods` are the set's own; `now` in ms since the epoch;
 * `isTaken` tells of a name whether a pod of others has it.
 */
export function planSync(
  set: StatefulSet,
  pods: readonly Pod[],
  { current, update }: Revisions,
  now: number,
  isTaken: (name: string) => boolean = () => false,
) {
  const { replicas = 1, ordinals, minReadySeconds, podManagementPolicy, updateStrategy } = set.spec;
  const isOrdered = podManagementPolicy !== "Parallel";
  const partition = updateStrategy?.rollingUpdate?.partition ?? 0;
  const start = ordinals?.start ?? 0;
  const isHealthy = (pod: Pod): boolean => !isTerminating(pod) && availableAt(pod, minReadySeconds) <= now;

  const byOrdinal = new Map(pods.map((pod) => [Number(pod.metadata.name.split("-").at(-1)), pod]));
  const desired = Array.from({ length: replicas }, (_, index) => {
    const ordinal = start + index;
    return byOrdinal.get(ordinal) ?? newPod(set, index < partition ? current : update, ordinal);
  });
  const isMissing = (pod: Pod): boolean => pod.status.phase === undefined;
  // A pod that cannot be created ends the sync, the rest of its batch aside.
  const blocked = desired.findIndex((pod) => isMissing(pod) && isTaken(pod.metadata.name));
  const batch = blocked < 0 ? desired : desired.slice(0, endOfBatch(blocked));
  const unhealthy = batch.filter((pod) => !isHealthy(pod)).slice(0, isOrdered ? 1 : undefined);
  const create = unhealthy.filter((pod) => isMissing(pod) && !isTaken(pod.metadata.name));
  const remove = unhealthy.filter((pod) => hasEnded(pod) && !isTerminating(pod));
  const reached = isOrdered && unhealthy[0] ? batch.slice(0, batch.indexOf(unhealthy[0])) : batch;
  const identify = reached.filter((pod) => !isMissing(pod) && !hasEnded(pod) && !hasIdentity(pod));
  if (blocked >= 0 || (isOrdered && unhealthy.length > 0)) return { create, remove, identify };

  const surplus = [...byOrdinal].filter(([ordinal]) => ordinal < start || ordinal >= start + replicas);
  const [highest, ...lower] = surplus.toSorted(([a], [b]) => b - a).map(([, pod]) => pod);
  if (highest && isOrdered) {
    const mayGo = isHealthy(highest) || (!isTerminating(highest) && lower.every(isHealthy));
    return { create, remove: mayGo ? [highest] : [], identify };
  }
  if (highest) remove.push(...[highest, ...lower].filter((pod) => !isTerminating(pod)));

  if (updateStrategy?.type === "OnDelete") return { create, remove, identify };
  const isOutdated = (pod: Pod): boolean => !isOf(update, pod);
  const most = Number(updateStrategy?.rollingUpdate?.maxUnavailable ?? 1);
  if (most > 1) {
    const down = desired.filter((pod) => !isHealthy(pod)).length;
    const outdated = desired
      .slice(partition)
      .filter((pod) => isOutdated(pod) && !isTerminating(pod) && !isMissing(pod));
    remove.push(...outdated.toReversed().slice(0, Math.max(0, most - down)));
    return { create, remove: [...new Set(remove)], identify };
  }
  const next = desired.slice(partition).findLast((pod) => isOutdated(pod) || !isHealthy(pod));
  if (next && isOutdated(next) && !isTerminating(next) && !remove.includes(next)) remove.push(next);
  return { create, remove, identify };
}

/** Pods are handled in batches of 1, 2, 4, ... (slowStartBatch): where the one with this index ends. */
const endOfBatch = (index: number): number => 2 ** (Math.floor(Math.log2(index + 1)) + 1) - 1;

const identityOf = (name: string): Record<string, string> => ({
  "statefulset.kubernetes.io/pod-name": name,
  "apps.kubernetes.io/pod-index": name.split("-").at(-1) ?? "",
});

function hasIdentity({ metadata: { name, labels = {} } }: Pod): boolean {
  return Object.entries(identityOf(name)).every(([label, value]) => labels[label] === value);
}

/** The pod with the labels that name it, as updateIdentity writes them. */
export function withIdentity(pod: Pod): Pod {
  return put(pod, ["metadata", "labels"], { ...pod.metadata.labels, ...identityOf(pod.metadata.name) });
}

/**
 * Builds the pod of an ordinal from its revision. Without a phase, as it is not created yet. Source:
 * stateful_set_utils.go.
 */
function newPod(set: StatefulSet, revision: Revision, ordinal: number): Pod {
  const { metadata, spec } = revision.data.spec.template;
  const name = `${set.metadata.name}-${ordinal}`;
  const labels = {
    ...metadata?.labels,
    ...identityOf(name),
    "controller-revision-hash": revision.metadata.name,
  };
  const { namespace = "", name: setName } = set.metadata;
  const ownerReferences = [controllerReference(set)];
  const pod: Draft = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...metadata, name, namespace, generateName: `${setName}-`, labels, ownerReferences },
    spec: { ...spec, hostname: name, subdomain: set.spec.serviceName },
    status: {},
  };
  return pod as Pod;
}

/**
 * When the pod becomes or became available (ms since the epoch): ready for `minReadySeconds`. Infinity if not
 * ready.
 */
export function availableAt(pod: Pod, minReadySeconds = 0): number {
  if (!isReady(pod)) return Infinity;
  const ready = pod.status.conditions?.find((condition) => condition.type === "Ready");
  return minReadySeconds === 0 ? 0 : Date.parse(ready?.lastTransitionTime ?? "") + minReadySeconds * 1000;
}

/** Whether the pod was made from that revision. */
function isOf(revision: Revision, pod: Pod): boolean {
  return pod.metadata.labels?.["controller-revision-hash"] === revision.metadata.name;
}

/**
 * The status, as computeReplicaStatus counts: terminating pods count as replicas and as ready, but not
 * towards a revision.
 */
export function statusOf(
  set: StatefulSet,
  pods: readonly Pod[],
  { current, update }: Revisions,
  now: number,
): StatefulSetStatus {
  const { replicas: desired = 1, minReadySeconds, updateStrategy } = set.spec;
  const countOf = (revision: Revision): number =>
    pods.filter((pod) => !isTerminating(pod) && isOf(revision, pod)).length;
  const readyReplicas = pods.filter(isReady).length;
  const updatedReplicas = countOf(update);
  // Only RollingUpdate promotes the update revision to the current one; with OnDelete the first stays current
  // forever.
  const isDone =
    updateStrategy?.type !== "OnDelete" &&
    [updatedReplicas, readyReplicas, pods.length].every((count) => count === desired);
  const reached = isDone ? update : current;
  const counts = Object.entries({ readyReplicas, updatedReplicas, currentReplicas: countOf(reached) });
  return {
    ...(set.status?.conditions && { conditions: set.status.conditions }),
    observedGeneration: set.metadata.generation ?? 1,
    replicas: pods.length,
    availableReplicas: pods.filter((pod) => availableAt(pod, minReadySeconds) <= now).length,
    // Go leaves out these when they are 0.
    ...Object.fromEntries(counts.filter(([, count]) => count > 0)),
    currentRevision: reached.metadata.name,
    updateRevision: update.metadata.name,
    collisionCount: 0,
  };
}
