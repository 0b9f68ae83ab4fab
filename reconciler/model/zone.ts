/** A zone: one StatefulSet of a rollout group, as the rules see it. */
import type { ObjectMeta, StatefulSet } from "../../infra/kubernetes/resources.ts";
import {
  ANNOTATIONS,
  boundValues,
  LABELS,
  parseBypass,
  parseMaxUnavailable,
  parseFlag,
  type WrittenBypass,
  lengthOf,
  MAX_TEXT,
  pickOurs,
  readScaling,
  type Scaling,
} from "./annotations.ts";
import { readIdentity } from "../../infra/kubernetes/identity.ts";
import type { Hold } from "./decision.ts";
import { type Labels, type LabelSelector, problemOfExpressions, selectorText } from "./label-selector.ts";
import { byOrdinal } from "./order.ts";
import type { Pod } from "./pod.ts";
import { findWindowProblem, readRolloutWindow, type WrittenWindow } from "./rollout-window.ts";

export interface Zone {
  readonly kind: "StatefulSet";
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** When the StatefulSet was created, in UTC, to the second (RFC 3339): such times sort as text. */
  readonly createdAt: string | undefined;
  /** The generation of its spec; grows with every change of it. */
  readonly generation: number;
  readonly group: string;
  /** The newest generation that the StatefulSet controller has seen. */
  readonly observedGeneration: number;
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
  /** Its batches begin with one pod and grow, up to `maxUnavailable`. */
  readonly accelerates: boolean;
  /** When pods of it that serve may be replaced; undefined for always. */
  readonly window: WrittenWindow | undefined;
  /** The bypass of its gates as written; the gates decide whether it counts. */
  readonly bypass?: WrittenBypass;
  /** Problems of its labels, annotations and selector, without that of its window: `problemsOf` has all. */
  readonly problems: readonly string[];
  readonly selector: LabelSelector;
  readonly serviceName: string;
  /** The ordinal of its first pod: `spec.ordinals.start`. */
  readonly firstOrdinal: number;
  readonly scaling: Scaling;
  /** Labels of the pods that it makes. */
  readonly podLabels: Labels;
  /** Images of the containers of its template, each once: the update revision's, once it is observed. */
  readonly images: readonly string[];
  readonly labels: Labels;
  /** Set if its labels and what else it names its pods by are too long to be kept: they are left out, and its group is refused. */
  readonly textProblem?: string;
  readonly status: ZoneStatus;
  /** Set for pods without a zone of the group, which count as one (orphans.ts). Nobody rolls them out or scales them. */
  readonly orphaned?: "gone" | "outside" | "replaced" | "named";
}

/** The leader of the zone, if it is among these. */
export const leaderAmong = (zones: readonly Zone[], { scaling }: Zone): Zone | undefined =>
  scaling.leader === undefined ? undefined : zones.find(({ name }) => name === scaling.leader);

/** Key of a group among all namespaces. */
export const groupKey = ({ namespace, group }: Pick<Zone, "namespace" | "group">): string => `${namespace}/${group}`;

interface ZoneStatus {
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
  /** Pods that a StatefulSet of its name has left behind, which hold names that it wants and which it cannot adopt. */
  readonly strangers?: readonly Pod[];
}

/** The verdicts of a group's gates, by the stored results of their checks. */
export interface GateVerdicts {
  /** Why a zone may not begin, by its UID. */
  readonly holds: ReadonlyMap<string, Hold>;
  /** Why the group does not count as settled yet. */
  readonly beforeSettled: Hold | undefined;
}

/** A zone that may begin without its gates. */
export interface Bypass {
  readonly zone: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
  readonly reason?: string;
}

/** The facts for a decision about a group, gathered at one moment. */
export interface GroupSnapshot {
  /** In byte order of their names. */
  readonly zones: readonly ZoneWithPods[];
  /** Pods of the group whose StatefulSet is none of its zones, as zones (orphans.ts). */
  readonly orphans?: readonly ZoneWithPods[];
  /** Absent if the group has no gates. */
  readonly gates?: GateVerdicts;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Its part that is read from the cluster at once. */
export type GatheredGroup = Omit<GroupSnapshot, "gates" | "now">;

type Spec = NonNullable<StatefulSet["spec"]>;
type Status = NonNullable<StatefulSet["status"]>;

/** Reads the fields that the rules need of a StatefulSet. */
export function readZone({ metadata = {}, ...object }: StatefulSet): Zone {
  const spec: Partial<Spec> = object.spec ?? {};
  const status: Partial<Status> = object.status ?? {};
  const { generation = 0 } = metadata;
  const { observedGeneration = 0 } = status;
  return {
    kind: "StatefulSet",
    ...readIdentity(metadata),
    createdAt: metadata.creationTimestamp,
    generation,
    observedGeneration,
    terminating: metadata.deletionTimestamp !== undefined,
    observed: observedGeneration >= generation,
    ...readSettings(metadata, spec),
    ...boundText({ labels: metadata.labels ?? {}, ...readSpec(spec) }),
    status: readStatus(status, spec.minReadySeconds),
  };
}

/** It matches no pod: pods of a zone whose selector is missing or invalid count as missing. */
const NO_POD: LabelSelector = {
  matchExpressions: ["Exists", "DoesNotExist"].map((operator) => ({ key: LABELS.rolloutGroup, operator })),
};

function boundText<T extends Pick<Zone, "labels" | "podLabels" | "selector" | "images" | "serviceName">>(text: T) {
  const { labels, podLabels, selector, images, serviceName } = text;
  const length =
    lengthOf(labels) + lengthOf(podLabels) + [selectorText(selector), serviceName, ...images].join("").length;
  if (length <= MAX_TEXT) return text;
  return {
    ...text,
    labels: pickOurs(labels),
    podLabels: pickOurs(podLabels),
    selector: NO_POD,
    images: [],
    serviceName: "",
    textProblem: `its labels, selector, images and Service have ${length} characters, more than ${MAX_TEXT}`,
  };
}

function readSpec({ replicas = 1, updateStrategy, selector, serviceName = "", ordinals, template }: Partial<Spec>) {
  return {
    replicas,
    updateStrategy: updateStrategy?.type ?? "RollingUpdate",
    selector: selector && problemOfExpressions(selector) === undefined ? readSelector(selector) : NO_POD,
    serviceName,
    firstOrdinal: ordinals?.start ?? 0,
    ...readTemplate(template),
  };
}

const readSelector = ({ matchLabels, matchExpressions }: LabelSelector): LabelSelector => ({
  ...(matchLabels && { matchLabels }),
  ...(matchExpressions && { matchExpressions }),
});

function readTemplate(template: Spec["template"] | undefined) {
  const containers = template?.spec?.containers ?? [];
  return {
    podLabels: template?.metadata?.labels ?? {},
    images: [...new Set(containers.flatMap(({ image = [] }) => image))],
  };
}

/** The settings that users make by labels and annotations, and what is wrong with them or with the selector. */
function readSettings({ labels, annotations: written }: ObjectMeta, { replicas, selector = {} }: Partial<Spec>) {
  const { value: annotations, problem } = boundValues(written);
  const maxUnavailable = parseMaxUnavailable(annotations?.[ANNOTATIONS.maxUnavailable], replicas);
  const paused = parseFlag(
    `annotation ${ANNOTATIONS.paused}`,
    annotations?.[ANNOTATIONS.paused],
    'only "true" pauses; the zone is not paused',
  );
  const bypass = parseBypass(annotations?.[ANNOTATIONS.bypassGatesUntil], annotations?.[ANNOTATIONS.bypassGatesReason]);
  const accelerate = parseFlag(
    `annotation ${ANNOTATIONS.rolloutAccelerate}`,
    annotations?.[ANNOTATIONS.rolloutAccelerate],
    'only "true" counts; batches do not accelerate',
  );
  const scaling = readScaling(labels, annotations);
  const { window, problems } = readRolloutWindow(annotations);
  return {
    group: labels?.[LABELS.rolloutGroup] ?? "",
    paused: paused.value,
    maxUnavailable: maxUnavailable.value,
    accelerates: accelerate.value,
    window,
    ...(bypass.value && { bypass: bypass.value }),
    problems: [
      problem,
      problemOfExpressions(selector),
      maxUnavailable.problem,
      paused.problem,
      bypass.problem,
      accelerate.problem,
      ...problems,
      ...scaling.problems,
    ].filter((problem) => problem !== undefined),
    scaling: scaling.value,
  };
}

/** The problems of its labels, annotations and selector, a sentence each. */
export function problemsOf({ window, problems }: Pick<Zone, "window" | "problems">): readonly string[] {
  const closes = findWindowProblem(window);
  return closes === undefined ? problems : [`${closes}; the zone's pods stay until it is corrected`, ...problems];
}

function readStatus(status: Partial<Status>, minReadySeconds: number | undefined): ZoneStatus {
  const { readyReplicas: ready = 0, availableReplicas: available = 0 } = status;
  return {
    replicas: status.replicas ?? 0,
    ready: minReadySeconds ? Math.min(ready, available) : ready,
    updated: status.updatedReplicas ?? 0,
    current: status.currentReplicas ?? 0,
    currentRevision: status.currentRevision ?? "",
    updateRevision: status.updateRevision ?? "",
  };
}

/** The zone with the `pods` that it controls: two StatefulSets with the same labels do not mix. */
export function withPods(zone: Zone, pods: readonly Pod[]): ZoneWithPods {
  return { ...zone, pods: pods.filter((pod) => pod.owner === zone.uid).toSorted(byOrdinal) };
}

/**
 * True if its current revision is the latest, as after a finished rollout. After a revert, pods of another revision may
 * still run.
 */
export function isZoneRecorded({ status }: Pick<Zone, "status">): boolean {
  return status.currentRevision === status.updateRevision;
}

/** The message about a zone once all of its pods are updated and ready. */
export const describeFinished = ({ name, status }: Pick<Zone, "name" | "status">): string =>
  `all pods of ${name} are updated to ${status.updateRevision} and ready`;

/** True if status alone shows that nothing is left to do, so that the pods need not be read. */
export function isSettledByStatus({ observed, replicas, status }: Zone): boolean {
  const { currentRevision, updateRevision } = status;
  const counts = [status.replicas, status.ready, status.updated];
  return (
    observed &&
    updateRevision !== "" &&
    currentRevision === updateRevision &&
    counts.every((count) => count === replicas)
  );
}

/** The zones of all groups, as one list has them. */
export interface ZoneList {
  /** The zones of each group, by `<namespace>/<group>`. */
  readonly groups: ReadonlyMap<string, readonly Zone[]>;
  /** The errors of namespaces that could not be read. */
  readonly failures: ReadonlyMap<string, unknown>;
  /** The version from which a watch of each namespace ("" for all) continues. */
  readonly resourceVersions: ReadonlyMap<string, string>;
}

/** What may be a revision's name: a whole one, without the dot that ends a sentence. */
const NAME = /\w[-.\w]*(?<=\w)/g;

/** The text with the images beside each update revision of these zones. A template that is not observed has none yet. */
export function nameImages(text: string, zones: readonly Pick<Zone, "observed" | "images" | "status">[]): string {
  const known = new Map(
    zones.flatMap(({ observed, images, status }) =>
      observed && images.length > 0 ? [[status.updateRevision, images.join(", ")] as const] : [],
    ),
  );
  return text.replaceAll(NAME, (name) => (known.has(name) ? `${known.get(name)} (${name})` : name));
}
