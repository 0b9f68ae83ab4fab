/** StatefulSets and pods of zones, as controllers and kubelets leave them: a test names only what matters to it. */
import type { PodObject, StatefulSet } from "../../infra/kubernetes/resources.ts";

export const LAST = "last";
export const PREVIOUS = "prev";
/** A zone whose pods all have the previous revision. */
export const OLD = { at: PREVIOUS };

/** When pods were made, and turned ready. */
const START = "2026-01-01T00:00:00Z";
export const CREATED = Date.parse(START);
/** When looks ahead begin and budgets are asked. */
export const NOON = Date.parse("2026-01-01T12:00:00Z");

export interface PodTraits {
  readonly revision?: string | undefined;
  readonly ready?: boolean;
  readonly terminating?: boolean | undefined;
  /** Reason of a waiting container, `Failed` for the phase, `Unschedulable` for a pod without a node. */
  readonly broken?: string;
  readonly phase?: string;
  /** The pod has a second container, which is ready. */
  readonly working?: boolean;
  /** The pod was ready before; the number of its containers' restarts since. */
  readonly restarts?: number;
  /** When its condition Ready turned: as it started, or an hour later if it has restarted; null if it tells no time. */
  readonly readyAt?: string | null;
  /** When its container began to run. */
  readonly startedAt?: string;
  readonly annotations?: Record<string, string>;
  /** `metadata.creationTimestamp`. */
  readonly createdAt?: string;
}

/** A pod of the StatefulSet `set` with ordinal `ordinal`. */
export function podObject(set: string, ordinal: number, traits: PodTraits = {}): PodObject {
  const { revision = LAST, ready = traits.broken === undefined, terminating = false, broken, phase } = traits;
  const waiting = { waiting: { reason: broken ?? "ContainerCreating" } };
  const condition = (type: string, status: string, reason?: string) => ({ type, status, ...(reason && { reason }) });
  const unschedulable = broken === "Unschedulable";
  const { readyAt: turned = traits.restarts === undefined ? START : "2026-01-01T01:00:00Z" } = traits;
  const running = { ...(traits.startedAt !== undefined && { startedAt: traits.startedAt }) };
  const whole = { name: "c", image: "i", imageID: "", restartCount: traits.restarts ?? 0 };
  return {
    metadata: {
      namespace: "test",
      name: `${set}-${ordinal}`,
      uid: `uid-${set}-${ordinal}`,
      resourceVersion: "1",
      labels: { name: set, ...(revision !== "" && { "controller-revision-hash": revision }) },
      ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: set, uid: `uid-${set}`, controller: true }],
      ...(terminating && { deletionTimestamp: START }),
      ...(traits.createdAt !== undefined && { creationTimestamp: traits.createdAt }),
      ...(traits.annotations && { annotations: traits.annotations }),
    },
    status: {
      phase: phase ?? (broken === "Failed" ? "Failed" : unschedulable ? "Pending" : "Running"),
      conditions: [
        condition("PodScheduled", unschedulable ? "False" : "True", unschedulable ? "Unschedulable" : undefined),
        ...(unschedulable
          ? []
          : [
              {
                ...condition("Ready", ready ? "True" : "False"),
                ...(turned !== null && { lastTransitionTime: turned }),
              },
            ]),
      ],
      ...(!unschedulable && { startTime: START }),
      containerStatuses: unschedulable
        ? []
        : [
            { ...whole, ready, state: ready || !broken ? { running } : waiting },
            ...(traits.working ? [{ ...whole, name: "d", restartCount: 0, ready: true, state: { running: {} } }] : []),
          ],
    },
  };
}

export interface ZoneTraits {
  readonly name?: string;
  readonly group?: string;
  readonly replicas?: number;
  /** `spec.ordinals.start`. */
  readonly start?: number | undefined;
  /** `status.readyReplicas`; all by default. */
  readonly statusReady?: number | undefined;
  readonly statusReplicas?: number;
  readonly available?: number | undefined;
  readonly minReadySeconds?: number;
  /** The revision of all pods; LAST by default. */
  readonly at?: string;
  readonly currentRevision?: string;
  readonly updateRevision?: string;
  readonly updateStrategy?: string;
  readonly serviceName?: string;
  readonly generation?: number;
  readonly terminating?: boolean | undefined;
  readonly observedGeneration?: number;
  /** `metadata.creationTimestamp`. */
  readonly createdAt?: string;
  /** What is written over its status. */
  readonly status?: object;
  readonly annotations?: Record<string, string>;
  readonly labels?: Record<string, string>;
  /** Labels of its pods that its selector has beside their name. */
  readonly selected?: Record<string, string>;
  /** Traits of single pods by ordinal, also beyond the replicas; null for a pod that does not exist. */
  readonly pods?: Readonly<Record<number, PodTraits | null>>;
}

/** More labels than are kept of an object. */
export const TOO_LONG: Record<string, string> = Object.fromEntries(
  Array.from({ length: 300 }, (_, i) => [`label-${i}`, "x".repeat(60)]),
);

export function statefulSetObject(traits: ZoneTraits = {}): StatefulSet {
  const { name = "ingester-zone-a", group = "ingester", replicas = 3, at = LAST, updateRevision = LAST } = traits;
  const statusReplicas = traits.statusReplicas ?? replicas;
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: {
      namespace: "test",
      name,
      uid: `uid-${name}`,
      resourceVersion: "1",
      generation: traits.generation ?? 1,
      ...(traits.terminating && { deletionTimestamp: START }),
      ...(traits.createdAt !== undefined && { creationTimestamp: traits.createdAt }),
      labels: { "rollout-group": group, ...traits.labels },
      annotations: traits.annotations ?? {},
    },
    spec: {
      serviceName: traits.serviceName ?? name,
      replicas,
      ...(traits.start !== undefined && { ordinals: { start: traits.start } }),
      ...(traits.minReadySeconds !== undefined && { minReadySeconds: traits.minReadySeconds }),
      updateStrategy: { type: traits.updateStrategy ?? "OnDelete" },
      selector: { matchLabels: { name, ...traits.selected } },
      template: { metadata: { labels: { name, ...traits.selected } } },
    },
    status: {
      observedGeneration: traits.observedGeneration ?? traits.generation ?? 1,
      replicas: statusReplicas,
      readyReplicas: traits.statusReady ?? statusReplicas,
      availableReplicas: traits.available ?? traits.statusReady ?? statusReplicas,
      updatedReplicas: at === updateRevision ? statusReplicas : 0,
      currentRevision: traits.currentRevision ?? at,
      updateRevision,
      ...traits.status,
    },
  };
}

/** The pods that the traits describe. */
export function podObjects(traits: ZoneTraits = {}): PodObject[] {
  const { name = "ingester-zone-a", replicas = 3, at = LAST } = traits;
  const length = Math.max(replicas, ...Object.keys(traits.pods ?? {}).map((ordinal) => Number(ordinal) + 1));
  return Array.from({ length }, (_, ordinal) => ordinal).flatMap((ordinal) => {
    const own = traits.pods?.[ordinal];
    return own === null ? [] : [podObject(name, ordinal, { revision: at, ...own })];
  });
}

/** Pods of a StatefulSet that is gone: nothing controls them. */
export function leftBehind(traits: ZoneTraits): PodObject[] {
  return podObjects(traits).map(({ metadata = {}, ...pod }) => {
    const { ownerReferences: _owner, ...own } = metadata;
    const labels = { ...own.labels, "statefulset.kubernetes.io/pod-name": own.name ?? "", "rollout-group": "ingester" };
    return { ...pod, metadata: { ...own, labels } };
  });
}

/** A zone, as a sketch or by traits. */
export type ZoneScene = ZoneTraits | string;

/** What a letter of a sketch says of a pod, after `o` for the previous or `n` for the last revision. */
const MARKS: Readonly<Record<string, PodTraits>> = {
  "": {},
  /** Never Ready. */
  "!": { ready: false },
  /** Was Ready, and is not any more. */
  "?": { ready: false, restarts: 0 },
  /** Crashes. */
  x: { broken: "CrashLoopBackOff" },
  /** Crashes, and a second container of it works. */
  "~": { broken: "CrashLoopBackOff", working: true },
  f: { phase: "Failed", broken: "Failed" },
  "-": { terminating: true },
};

/**
 * A zone by its pods, in the order of their ordinals: `oo!n- max 1 paused`; a dot is a pod that is missing. Where a pod
 * is old, the zone rolls out. `of 2`: its replicas, as many as pods by default; `counts 4`, `ready 1`: what its status
 * says, by default its replicas, and how many of those pods are ready.
 */
function sketch(text: string): ZoneTraits {
  const [pods = "", ...words] = text.split(" ");
  const tokens = [...pods.matchAll(/([on])([!?x~f-]?)|\./g)];
  const numberAfter = (word: string): number | undefined =>
    words.includes(word) ? Number(words[words.indexOf(word) + 1]) : undefined;
  const replicas = numberAfter("of") ?? tokens.length;
  const at = pods.includes("o") ? PREVIOUS : LAST;
  const isReady = ([token, , mark]: RegExpExecArray): boolean => token !== "." && mark === "";
  const counted = numberAfter("counts");
  return {
    replicas,
    at,
    ...(counted !== undefined && { statusReplicas: counted }),
    statusReady: numberAfter("ready") ?? tokens.filter(isReady).length,
    annotations: {
      ...(words.includes("max") && { "rollout-max-unavailable": String(numberAfter("max")) }),
      ...(words.includes("paused") && { "grafana.com/rollout-paused": "true" }),
    },
    pods: Object.fromEntries(
      tokens.map(([token, revision, mark = ""], ordinal) => [
        ordinal,
        token === "." ? null : { revision: revision === "o" ? PREVIOUS : LAST, ...MARKS[mark] },
      ]),
    ),
  };
}

/** Of a sketch, or as they are. */
export const traitsOf = (zone: ZoneScene): ZoneTraits => (typeof zone === "string" ? sketch(zone) : zone);
