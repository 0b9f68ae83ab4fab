/** The StatefulSet of a PhasedRollout, as the rules see it. */
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { ANNOTATIONS, LABELS } from "../model/annotations.ts";
import { ordinalOf } from "../model/order.ts";
import type { Pod } from "../model/pod.ts";
import { readZone, withPods, type Zone } from "../model/zone.ts";

/** Named by each of our writes to it: the admission of StatefulSets lets others lower no partition. */
export const FIELD_MANAGER = "zonewise-reconciler";

export interface Target extends Zone {
  /** `spec.updateStrategy.rollingUpdate.partition`; absent counts as 0, as the API server has it. Pods from this index on get the update revision. */
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

const INTEGER = /^\d{1,9}$/;

export function readTarget(object: StatefulSet): Target {
  const { metadata: { labels = {}, annotations = {} } = {}, spec, status } = object;
  return {
    ...readZone(object),
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
  return INTEGER.test(text) ? Number(text) : undefined;
}

/** True if its status alone shows that every pod is at the update revision and no pod may leave it: its pods need not be read. */
export function isGuarded({ observed, replicas, partition, status }: Target): boolean {
  const { currentRevision, updateRevision } = status;
  return observed && currentRevision === updateRevision && partition === replicas && isWhole(replicas, status);
}

function isWhole(replicas: number, status: Zone["status"]): boolean {
  return status.replicas === replicas && status.updated === replicas;
}

/** The pods of the set by their index, which counts from its first ordinal: the partition is such an index. */
export function podsByIndex(target: Target, pods: readonly Pod[]): ReadonlyMap<number, Pod> {
  const own = withPods(target, pods).pods;
  return new Map(own.map((pod) => [ordinalOf(pod) - target.firstOrdinal, pod]));
}
