/** A zone: one StatefulSet of a rollout group, as the rules see it. */
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { ANNOTATIONS, LABELS, parseMaxUnavailable, parsePaused } from "./annotations.ts";
import { byOrdinal } from "./order.ts";
import type { Pod } from "./pod.ts";
import { readScaling, type Scaling } from "./scaling.ts";

export type Labels = Readonly<Record<string, string>>;

export interface Zone {
  readonly kind: "StatefulSet";
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Of its spec; grows with every change of it. */
  readonly generation: number;
  readonly group: string;
  /** It is being deleted: its pods are not recreated. */
  readonly terminating: boolean;
  /** False while the StatefulSet controller has not seen the latest spec: the status then says nothing yet. */
  readonly observed: boolean;
  /** `spec.replicas`; absent counts as 1, as the API server has it. */
  readonly replicas: number;
  readonly updateStrategy: string;
  readonly paused: boolean;
  /** How many pods may be unavailable while the zone rolls; at least 1. */
  readonly maxUnavailable: number;
  /** Problems of its labels and annotations. */
  readonly problems: readonly string[];
  /** The selector of its pods, in the API's notation. */
  readonly selector: string;
  /** The Service that names its pods. */
  readonly serviceName: string;
  /** The ordinal of its first pod: `spec.ordinals.start`. */
  readonly firstOrdinal: number;
  readonly scaling: Scaling;
  /** Labels of the pods that it makes. */
  readonly podLabels: Labels;
  readonly status: ZoneStatus;
}

/** Key of a group among all namespaces. */
export const groupKey = ({ namespace, group }: Pick<Zone, "namespace" | "group">): string => `${namespace}/${group}`;

export interface ZoneStatus {
  readonly replicas: number;
  /** Ready, and available too where `minReadySeconds` asks for it. */
  readonly ready: number;
  /** Pods of the update revision, and of the current one, that are not terminating. */
  readonly updated: number;
  readonly current: number;
  readonly currentRevision: string;
  readonly updateRevision: string;
}

/** A zone with its pods in the order of their ordinals. */
export interface ZoneWithPods extends Zone {
  readonly pods: readonly Pod[];
}

/** The facts for a decision about a group, gathered at one moment. */
export interface GroupSnapshot {
  readonly namespace: string;
  readonly name: string;
  /** In byte order of their names. */
  readonly zones: readonly ZoneWithPods[];
}

/** Reads the fields that the rules need of a StatefulSet. */
export function readZone({ metadata, spec, status }: StatefulSet): Zone {
  const maxUnavailable = parseMaxUnavailable(metadata?.annotations?.[ANNOTATIONS.maxUnavailable], spec?.replicas);
  const paused = parsePaused(metadata?.annotations?.[ANNOTATIONS.paused]);
  const scaling = readScaling(metadata?.labels, metadata?.annotations);
  const ready = status?.readyReplicas ?? 0;
  return {
    kind: "StatefulSet",
    namespace: metadata?.namespace ?? "",
    name: metadata?.name ?? "",
    uid: metadata?.uid ?? "",
    resourceVersion: metadata?.resourceVersion ?? "",
    generation: metadata?.generation ?? 0,
    group: metadata?.labels?.[LABELS.rolloutGroup] ?? "",
    terminating: metadata?.deletionTimestamp !== undefined,
    observed: (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0),
    replicas: spec?.replicas ?? 1,
    updateStrategy: spec?.updateStrategy?.type ?? "RollingUpdate",
    paused: paused.value,
    maxUnavailable: maxUnavailable.value,
    problems: [maxUnavailable.problem, paused.problem, ...scaling.problems].filter((problem) => problem !== undefined),
    selector: selectorText(spec?.selector),
    serviceName: spec?.serviceName ?? "",
    firstOrdinal: spec?.ordinals?.start ?? 0,
    scaling: scaling.value,
    podLabels: spec?.template.metadata?.labels ?? {},
    status: {
      replicas: status?.replicas ?? 0,
      ready: spec?.minReadySeconds ? Math.min(ready, status?.availableReplicas ?? 0) : ready,
      updated: status?.updatedReplicas ?? 0,
      current: status?.currentReplicas ?? 0,
      currentRevision: status?.currentRevision ?? "",
      updateRevision: status?.updateRevision ?? "",
    },
  };
}

/** The zone with those of `pods` that it controls: two StatefulSets with the same labels do not mix. */
export function withPods(zone: Zone, pods: readonly Pod[]): ZoneWithPods {
  return { ...zone, pods: pods.filter((pod) => pod.owner === zone.uid).toSorted(byOrdinal) };
}

/** True if status alone shows that nothing is left to do, so that the pods need not be read. */
export function isSettledByStatus({ observed, replicas, status }: Zone): boolean {
  const { currentRevision, updateRevision } = status;
  const counts = [status.replicas, status.ready, status.updated];
  return observed && updateRevision !== "" && currentRevision === updateRevision && counts.every((count) => count === replicas);
}

type Selector = NonNullable<StatefulSet["spec"]>["selector"];

const OPERATORS: Record<string, (key: string, values: string) => string> = {
  In: (key, values) => `${key} in (${values})`,
  NotIn: (key, values) => `${key} notin (${values})`,
  Exists: (key) => key,
  DoesNotExist: (key) => `!${key}`,
};

/** A LabelSelector in the notation of the API's `labelSelector` parameter. */
export function selectorText(selector: Selector | undefined): string {
  const labels = Object.entries(selector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const expressions = (selector?.matchExpressions ?? []).map(
    ({ key, operator, values }) => OPERATORS[operator]?.(key, (values ?? []).join(",")) ?? "",
  );
  return [...labels, ...expressions].filter((term) => term !== "").join(",");
}
