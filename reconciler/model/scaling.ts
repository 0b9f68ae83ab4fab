/** The scaling settings of a zone, by its labels and annotations (§0.2, §2). */
import { parseGoDuration, parsePrometheusDuration } from "../../infra/duration.ts";
import { isPathSegment } from "../../infra/path-segment.ts";
import { ANNOTATIONS, LABELS, type Parsed } from "./annotations.ts";

export interface Scaling {
  /** Name of the StatefulSet whose replicas it follows. */
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

type Strings = Readonly<Record<string, string>> | undefined;

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
export function describeTwoMinTimes(labels: Strings, annotations: Strings): string | undefined {
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

function parseFlag(key: string, written: string | undefined): Parsed<boolean> {
  if (written === undefined || written === "true" || written === "false") return { value: written === "true" };
  return { value: false, problem: `${key} is "${written}": only "true" counts; it is ignored` };
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
