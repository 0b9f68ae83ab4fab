/** Every label and annotation that Zonewise knows, and how the value of each is read (§0.2, §1.6, §2). */
import { cut } from "../../infra/cut.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import type { Labels } from "./label-selector.ts";
import { parseGoDuration, parsePrometheusDuration } from "../../infra/duration.ts";
import { isPathSegment } from "../../infra/path-segment.ts";

export const LABELS = {
  /** On a StatefulSet: the group it belongs to. An empty value is refused (refused-group.ts). */
  rolloutGroup: "rollout-group",
  /** On a pod, set by Kubernetes: the revision the pod was made from. */
  revision: "controller-revision-hash",
  /** On a follower: how long after another zone was scaled down it may be, a Go duration. */
  minTimeBetweenZonesDownscale: "grafana.com/min-time-between-zones-downscale",
  /** On a StatefulSet, Deployment or ReplicaSet, exactly `true`: it is not scaled down. */
  noDownscale: "grafana.com/no-downscale",
  /** On a StatefulSet, exactly `true`: pods are notified before they are scaled away. */
  prepareDownscale: "grafana.com/prepare-downscale",
} as const;

export const ANNOTATIONS = {
  maxUnavailable: "rollout-max-unavailable",
  paused: "grafana.com/rollout-paused",
  /** Exactly `true`: batches of the zone begin with one pod, and double as long as pods come up healthy. */
  rolloutAccelerate: "zonewise.dev/rollout-accelerate",
  /** When pods of the zone may be replaced: a cron expression with seconds. */
  rolloutWindow: "zonewise.dev/rollout-window",
  /** For how long the window is open once it has opened, a Go duration. */
  rolloutWindowDuration: "zonewise.dev/rollout-window-duration",
  /** The time zone of the window; UTC without it. */
  rolloutWindowTimeZone: "zonewise.dev/rollout-window-time-zone",
  /** When no pod of the zone is replaced: intervals `<RFC 3339>/<RFC 3339>`, separated by commas. */
  rolloutFreezes: "zonewise.dev/rollout-freezes",
  downscaleLeader: "grafana.com/rollout-downscale-leader",
  upscaleOnlyWhenLeaderReady: "grafana.com/rollout-upscale-only-when-leader-ready",
  forceReplicas: "grafana.com/rollout-force-replicas",
  lastDownscale: "grafana.com/last-downscale",
  mirrorName: "grafana.com/rollout-mirror-replicas-from-resource-name",
  mirrorKind: "grafana.com/rollout-mirror-replicas-from-resource-kind",
  mirrorApiVersion: "grafana.com/rollout-mirror-replicas-from-resource-api-version",
  mirrorWriteBack: "grafana.com/rollout-mirror-replicas-from-resource-write-back",
  delayedDownscale: "grafana.com/rollout-delayed-downscale",
  prepareDelayedDownscaleUrl: "grafana.com/rollout-prepare-delayed-downscale-url",
  prepareHttpPath: "grafana.com/prepare-downscale-http-path",
  prepareHttpPort: "grafana.com/prepare-downscale-http-port",
  /** On a StatefulSet: until when it may begin without its gates, RFC 3339. */
  bypassGatesUntil: "zonewise.dev/bypass-gates-until",
  /** Beside it: the reason for the bypass. */
  bypassGatesReason: "zonewise.dev/bypass-gates-reason",
  /** On a pod, exactly `true`: a person may delete it, whatever its disruption budget says. */
  deleteByHand: "zonewise/delete-by-hand",
  /** On a StatefulSet: the name of the PhasedRollout that manages its partition. */
  phasedRollout: "sts.plus/phasedRollout",
  /** On a StatefulSet: the partition that it had before a PhasedRollout claimed it. */
  originalPartition: "sts.plus/original-partition",
  /** On a PhasedRollout, exactly `true`: no pod is released by checks. */
  pausePhases: "sts.plus/pause",
  /** On a PhasedRollout, `<updateRevision>/<partition>`: this one step needs no checks. */
  promoteStep: "sts.plus/promote-step",
} as const;

/** A value as it is used, and the problem of the written value, if it has one. */
interface Parsed<T> {
  readonly value: T;
  readonly problem?: string;
}

type Strings = Readonly<Record<string, string>> | undefined;

/** Characters of a value: what is read of it, repeated in messages or stored. A longer one means nothing. */
export const MAX_VALUE_LENGTH = 1000;

/** The annotations with a value that nothing accepts in place of each of ours that is too long. */
export function boundValues(annotations: Strings): Parsed<Strings> {
  const long = Object.values(ANNOTATIONS).filter((name) => (annotations?.[name]?.length ?? 0) > MAX_VALUE_LENGTH);
  if (long.length === 0) return { value: annotations };
  const bounded = long.map((name) => [name, `${cut(annotations?.[name] ?? "", MAX_VALUE_LENGTH)}\u2026`]);
  return {
    value: { ...annotations, ...Object.fromEntries(bounded) },
    problem: `more than ${MAX_VALUE_LENGTH} characters in ${long.map((name) => `annotation ${name}`).join(", ")}`,
  };
}

const INTEGER = /^[+-]?\d{1,15}$/;
const POSITIVE = /^\+?\d{1,15}$/;

/**
 * `rollout-max-unavailable` (§1.6): how many pods of a zone may be unavailable while it rolls; at least 1. An integer >
 * 0, or 1 % to 100 % of `replicas` rounded down. A missing value counts as 1; so does a wrong one, with a warning.
 */
export function parseMaxUnavailable(written: string | undefined, replicas: number | undefined): Parsed<number> {
  if (written === undefined) return { value: 1 };
  const invalid = (): Parsed<number> => ({
    value: 1,
    problem: `annotation ${ANNOTATIONS.maxUnavailable} is "${written}": it must be an integer above 0 or a percentage from 1% to 100%; 1 is used`,
  });
  const text = written.trim();
  if (!text.endsWith("%")) return INTEGER.test(text) && Number(text) > 0 ? { value: Number(text) } : invalid();
  const percent = POSITIVE.test(text.slice(0, -1)) ? Number(text.slice(0, -1)) : 0;
  if (percent < 1 || percent > 100) return invalid();
  return { value: Math.max(1, Math.floor((percent * (replicas ?? 0)) / 100)) };
}

/** A bypass of the gates, as it is written. */
export interface WrittenBypass {
  /** It should be RFC 3339. */
  readonly until: string;
  readonly reason?: string;
}

/** Bounds of the parts of a bypass that are stored and shown. */
const MAX_TIMESTAMP_LENGTH = 64;
const MAX_REASON_LENGTH = 200;

/** `zonewise.dev/bypass-gates-until`: a timestamp; anything else bypasses nothing, and is pointed out (§14.8). */
export function parseBypass(
  written: string | undefined,
  reason: string | undefined,
): Parsed<WrittenBypass | undefined> {
  if (written === undefined) return { value: undefined };
  const until = written.slice(0, MAX_TIMESTAMP_LENGTH);
  const line = reason
    ?.replaceAll(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, MAX_REASON_LENGTH)
    .toWellFormed();
  const value = { until, ...(line && { reason: line }) };
  if (until === written && parseTimestamp(until) !== undefined) return { value };
  return {
    value,
    problem: `annotation ${ANNOTATIONS.bypassGatesUntil} is "${until}": it must be a time such as 2026-01-01T12:00:00Z; no gate is bypassed`,
  };
}

/** Exactly `true`; other spellings of it do not count, and are pointed out. `what` names the label or annotation. */
export function parseFlag(
  what: string,
  written: string | undefined,
  why = 'only "true" counts; it is ignored',
): Parsed<boolean> {
  if (written === undefined || written === "true" || written === "false") return { value: written === "true" };
  return { value: false, problem: `${what} is "${written}": ${why}` };
}

/**
 * Characters that are kept of a pod's labels; and of the labels, the selector, the images and the Service of a
 * StatefulSet together. Kubernetes bounds each label, and not all of them: one tenant could fill the memory of a process
 * that keeps those of every zone and pod.
 */
export const MAX_TEXT = 16 * 1024;

export const lengthOf = (labels: Labels): number =>
  Object.entries(labels).reduce((sum, [key, value]) => sum + key.length + value.length, 0);

/** What is kept of labels that are too long: those that Zonewise reads. */
export function pickOurs(labels: Labels): Labels {
  const own = Object.values(LABELS).filter((key) => Object.hasOwn(labels, key));
  return Object.fromEntries(own.map((key) => [key, labels[key] ?? ""]));
}

// The scaling settings of a zone (§0.2, §2).

export interface Scaling {
  readonly leader: string | undefined;
  readonly upscaleOnlyWhenLeaderReady: boolean;
  /** The replicas that it should have regardless of leader and reference. */
  readonly forcedReplicas: number | undefined;
  readonly mirror: Mirror | undefined;
  /** As written: the time that must lie between scaling down two zones. */
  readonly minTime: string | undefined;
  /** As written: when it was last scaled down. */
  readonly lastDownscale: string | undefined;
  /** As written: how long a pod must have been prepared before it may go; "" for at once. */
  readonly delay: string;
  /** As written: where a pod is prepared; "" for nowhere. */
  readonly prepareUrl: string;
  /** The webhook prepare-downscale judges each of its downscales, under the downscale Lease of the group (§4.4). */
  readonly judgedByWebhook: boolean;
}

/** The resource whose replicas a zone takes over, through its scale subresource. */
export interface Mirror {
  readonly kind: string;
  readonly name: string;
  /**
   * API group, "" for core; undefined if the annotation cannot be read. The version that it names is not used (§2.4.1).
   */
  readonly group: string | undefined;
  readonly apiVersion: string;
  /** The zone's replicas are written back to the resource's status. */
  readonly writeBack: boolean;
}

/**
 * Milliseconds until an admitted write of replicas can no longer be stored: the API server ends a request after 60 s,
 * and clocks differ.
 */
export const STORE_TIMEOUT_MS = 90_000;

export function readScaling(
  labels: Strings,
  annotations: Strings,
): { readonly value: Scaling; readonly problems: readonly string[] } {
  const written = (key: keyof typeof ANNOTATIONS): string | undefined => annotations?.[ANNOTATIONS[key]];
  const forced = parseForceReplicas(written("forceReplicas"));
  const readyOnly = parseFlag(ANNOTATIONS.upscaleOnlyWhenLeaderReady, written("upscaleOnlyWhenLeaderReady"));
  const writeBack = parseWriteBack(written("mirrorWriteBack"));
  const [noDownscale, prepared] = [LABELS.noDownscale, LABELS.prepareDownscale].map((key) =>
    parseFlag(key, labels?.[key]),
  );
  const value: Scaling = {
    leader: written("downscaleLeader"),
    upscaleOnlyWhenLeaderReady: readyOnly.value,
    forcedReplicas: forced.value,
    mirror: readMirror(annotations, writeBack.value),
    minTime: readMinTime(labels, annotations),
    lastDownscale: written("lastDownscale"),
    delay: written("delayedDownscale") ?? "",
    prepareUrl: written("prepareDelayedDownscaleUrl") ?? "",
    judgedByWebhook: prepared?.value === true && noDownscale?.value !== true,
  };
  const problems = [forced, readyOnly, writeBack, noDownscale, prepared].map((parsed) => parsed?.problem);
  return {
    value,
    problems: [...problems, ...findUseless(value, annotations), describeTwoMinTimes(labels, annotations)].filter(
      (problem) => problem !== undefined,
    ),
  };
}

function readMirror(annotations: Strings, writeBack: boolean): Mirror | undefined {
  const { mirrorKind, mirrorName, mirrorApiVersion } = ANNOTATIONS;
  const [kind = "", name = "", apiVersion = ""] = [mirrorKind, mirrorName, mirrorApiVersion].map(
    (key) => annotations?.[key],
  );
  const group = groupOf(apiVersion);
  // A workload's status belongs to its controller: replicas of another zone would look like missing pods.
  return kind === "" || name === ""
    ? undefined
    : { kind, name, apiVersion, group, writeBack: writeBack && group !== "apps" };
}

/**
 * The time between zones: a label, or an annotation of the same name, which wins, as older and newer versions of
 * upstream have it.
 */
function readMinTime(labels: Strings, annotations: Strings): string | undefined {
  const key = LABELS.minTimeBetweenZonesDownscale;
  return annotations?.[key] ?? labels?.[key];
}

/** The warning if both are there and differ (§2.2). */
function describeTwoMinTimes(labels: Strings, annotations: Strings): string | undefined {
  const key = LABELS.minTimeBetweenZonesDownscale;
  const [label, annotation] = [labels?.[key], annotations?.[key]];
  if (label === undefined || annotation === undefined || label === annotation) return undefined;
  return `${key} is "${annotation}" as an annotation and "${label}" as a label: the annotation wins`;
}

const INT32 = /^[+-]?\d{1,12}$/;

/**
 * `grafana.com/rollout-force-replicas` (§2.3): an integer from 0 to 2^31 - 1; anything else counts as absent, with a
 * problem.
 */
function parseForceReplicas(written: string | undefined): Parsed<number | undefined> {
  if (written === undefined) return { value: undefined };
  const value = INT32.test(written) ? Number(written) : -1;
  if (value >= 0 && value < 2 ** 31) return { value };
  return {
    value: undefined,
    problem: refusal("forceReplicas", written, "it must be an integer from 0 to 2147483647; it is ignored"),
  };
}

const TRUE = /^(?:1|t|T|true|TRUE|True)$/;
const FALSE = /^(?:0|f|F|false|FALSE|False)$/;

// An unreadable value means no (§2.5).
function parseWriteBack(written: string | undefined): Parsed<boolean> {
  if (written === undefined || TRUE.test(written)) return { value: true };
  if (FALSE.test(written)) return { value: false };
  return {
    value: false,
    problem: refusal("mirrorWriteBack", written, "it must be true or false; nothing is written back"),
  };
}

function groupOf(apiVersion: string): string | undefined {
  const parts = apiVersion.split("/");
  const [group = ""] = parts.length === 2 ? parts : [];
  return parts.length > 2 || (group !== "" && !isPathSegment(group)) ? undefined : group;
}

/** Why no object can have the mirror's name, or undefined. */
export function describeBadName({ name }: Pick<Mirror, "name">): string | undefined {
  return isPathSegment(name) ? undefined : refusal("mirrorName", name.slice(0, 253), "no object has such a name");
}

function refusal(key: keyof typeof ANNOTATIONS, written: string, why: string): string {
  return `annotation ${ANNOTATIONS[key]} is "${written}": ${why}`;
}

type Annotation = keyof typeof ANNOTATIONS;

/** Each has an effect only beside the other. */
const PAIRS: readonly (readonly [Annotation, Annotation])[] = [
  ["delayedDownscale", "prepareDelayedDownscaleUrl"],
  ["prepareDelayedDownscaleUrl", "delayedDownscale"],
  ["mirrorName", "mirrorKind"],
  ["mirrorKind", "mirrorName"],
];

/**
 * The problems of settings without the effect that their author expects, by themselves or because another setting is
 * missing (§0.2), a sentence each.
 */
function findUseless(scaling: Scaling, annotations: Strings): string[] {
  const isSet = (key: Annotation): boolean => (annotations?.[ANNOTATIONS[key]] ?? "") !== "";
  const alone = PAIRS.filter(([one, other]) => isSet(one) && !isSet(other));
  return [
    ...alone.map(([one, other]) => `annotation ${ANNOTATIONS[one]} has no effect without ${ANNOTATIONS[other]}`),
    ...findBadTimes(scaling),
    ...findIdleForce(scaling),
    ...(scaling.mirror ? [describeBadName(scaling.mirror)].filter((problem) => problem !== undefined) : []),
  ];
}

function findBadTimes({ minTime, delay, prepareUrl }: Scaling): string[] {
  const bad: string[] = [];
  const least = minTime === undefined ? 0 : (parseGoDuration(minTime) ?? -1);
  if (least < 0)
    bad.push(
      `${LABELS.minTimeBetweenZonesDownscale} is "${minTime}", not a duration such as 12h: downscales that depend on it are refused`,
    );
  if (delay !== "" && prepareUrl !== "" && parsePrometheusDuration(delay) === undefined)
    bad.push(
      `annotation ${ANNOTATIONS.delayedDownscale} is "${delay}", not a duration such as 1h30m: the zone is not scaled`,
    );
  return bad;
}

function findIdleForce({ forcedReplicas, leader, mirror }: Scaling): string[] {
  if (forcedReplicas === undefined || leader !== undefined || mirror) return [];
  return [`annotation ${ANNOTATIONS.forceReplicas} has no effect: the zone has no leader and mirrors no resource`];
}
