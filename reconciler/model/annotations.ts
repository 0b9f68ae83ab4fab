/** Every label and annotation that Zonewise knows, and how the value of each is read (§0.2, §1.6). */
import { cut } from "../../infra/cut.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import type { Labels } from "./label-selector.ts";

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
export interface Parsed<T> {
  readonly value: T;
  readonly problem?: string;
}

type Strings = Readonly<Record<string, string>>;

/** Characters of a value: what is read of it, repeated in messages or stored. A longer one means nothing. */
export const MAX_VALUE_LENGTH = 1000;

/** The annotations with a value that nothing accepts in place of each of ours that is too long. */
export function boundValues(annotations: Strings | undefined): Parsed<Strings | undefined> {
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
  const refuse = (): Parsed<number> => ({
    value: 1,
    problem: `annotation ${ANNOTATIONS.maxUnavailable} is "${written}": it must be an integer above 0 or a percentage from 1% to 100%; 1 is used`,
  });
  const text = written.trim();
  if (!text.endsWith("%")) return INTEGER.test(text) && Number(text) > 0 ? { value: Number(text) } : refuse();
  const percent = POSITIVE.test(text.slice(0, -1)) ? Number(text.slice(0, -1)) : 0;
  if (percent < 1 || percent > 100) return refuse();
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

/** `grafana.com/rollout-paused`: exactly `true` pauses; other spellings of it do not, and are pointed out. */
export const parsePaused = (written: string | undefined): Parsed<boolean> =>
  parseFlag(ANNOTATIONS.paused, written, `only "true" pauses; the zone is not paused`);

/** `zonewise.dev/rollout-accelerate`: exactly `true`; other spellings are pointed out. */
export const parseAccelerate = (written: string | undefined): Parsed<boolean> =>
  parseFlag(ANNOTATIONS.rolloutAccelerate, written, `only "true" counts; batches do not accelerate`);

function parseFlag(name: string, written: string | undefined, why: string): Parsed<boolean> {
  if (written === undefined || written === "true" || written === "false") return { value: written === "true" };
  return { value: false, problem: `annotation ${name} is "${written}": ${why}` };
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
