/** The StatefulSet of a PhasedRollout, as the rules see it. */
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { ANNOTATIONS, LABELS } from "../model/annotations.ts";
import { ordinalOf } from "../model/order.ts";
import type { Pod } from "../model/pod.ts";
import { nameImages, readZone, withPods, type Zone } from "../model/zone.ts";

/** The field manager of each of our writes: the admission of StatefulSets lets no other client lower a partition. */
export const FIELD_MANAGER = "zonewise-reconciler";

/**
 * The partition while the latest template is released to no pod: the greatest that the API has. Pods below the
 * partition get the current revision. So do pods that a scale-out adds, by any client and by any path (§16.15).
 */
export const HELD = 2_147_483_647;

export interface Target extends Zone {
  /** In the same format as that of a pod. */
  readonly createdAt: string | undefined;
  /**
   * `spec.updateStrategy.rollingUpdate.partition`; absent counts as 0, as the API server has it. Pods from this index
   * on get the update revision.
   */
  readonly partition: number;
  /** Its controller does nothing about other pods while one is not ready: pod management policy `OrderedReady`. */
  readonly ordered: boolean;
  /** `status.availableReplicas`. */
  readonly available: number;
  /** Name of the PhasedRollout that manages it. */
  readonly owner: string | undefined;
  /** The partition that it had before a PhasedRollout claimed it. */
  readonly originalPartition: number | undefined;
  /** It is a zone of a rollout group. */
  readonly isZone: boolean;
}

const INTEGER = /^\d{1,10}$/;

export function readTarget(object: StatefulSet): Target {
  const { metadata: { creationTimestamp: createdAt, labels = {}, annotations = {} } = {}, spec, status } = object;
  return {
    ...readZone(object),
    createdAt,
    ordered: spec?.podManagementPolicy !== "Parallel",
    available: readAvailable(status),
    partition: spec?.updateStrategy?.rollingUpdate?.partition ?? 0,
    owner: annotations[ANNOTATIONS.phasedRollout],
    originalPartition: readPartition(annotations[ANNOTATIONS.originalPartition]),
    isZone: labels[LABELS.rolloutGroup] !== undefined,
  };
}

function readAvailable(status: StatefulSet["status"]): number {
  return status?.availableReplicas ?? 0;
}

function readPartition(text = ""): number | undefined {
  return INTEGER.test(text) && Number(text) <= HELD ? Number(text) : undefined;
}

/** The index of the lowest released pod; the replicas without one. */
export const firstReleased = ({ partition, replicas }: Pick<Target, "partition" | "replicas">): number =>
  Math.min(partition, replicas);

/** The update revision with its images. */
export const nameTargetRevision = (target: Target): string => nameImages(target.status.updateRevision, [target]);

/**
 * True if its status alone shows that every pod is at the update revision and no pod may leave it: its pods need not be
 * read.
 */
export function isGuarded({ observed, replicas, partition, status }: Target): boolean {
  const { currentRevision, updateRevision } = status;
  return observed && currentRevision === updateRevision && partition === replicas && isWhole(replicas, status);
}

function isWhole(replicas: number, status: Zone["status"]): boolean {
  return status.replicas === replicas && status.updated === replicas;
}

type Pods = ReadonlyMap<number, Pod>;

/**
 * The lowest index from `from` on, below `end`, without a pod or with one that is `wanted`. The search ends at the
 * first missing pod, so that it takes as long as there are pods: `spec.replicas` has no bound.
 */
export function findUpwards(
  pods: Pods,
  [from, end]: readonly [number, number],
  wanted: (pod: Pod) => boolean,
): number | undefined {
  for (let index = from; index < end; index++) {
    const pod = pods.get(index);
    if (!pod || wanted(pod)) return index;
  }
  return undefined;
}

/** As `findUpwards`: the highest index below `end`. */
export function findDownwards(pods: Pods, end: number, wanted: (pod: Pod) => boolean): number | undefined {
  for (let index = end - 1; index >= 0; index--) {
    const pod = pods.get(index);
    if (!pod || wanted(pod)) return index;
  }
  return undefined;
}

/** The pods of the set by their index, which counts from its first ordinal: the partition is such an index. */
export function podsByIndex(target: Target, pods: readonly Pod[]): ReadonlyMap<number, Pod> {
  const own = withPods(target, pods).pods;
  return new Map(own.map((pod) => [ordinalOf(pod) - target.firstOrdinal, pod]));
}
