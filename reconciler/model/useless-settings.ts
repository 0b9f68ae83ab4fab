/** Settings of a zone's scaling that do not do what their author expects, each alone or for want of another (§0.2). */
import { parseGoDuration, parsePrometheusDuration } from "../../infra/duration.ts";
import { ANNOTATIONS, LABELS } from "./annotations.ts";
import type { Scaling } from "./scaling.ts";

type Annotation = keyof typeof ANNOTATIONS;
type Strings = Readonly<Record<string, string>> | undefined;

/** Each has an effect only beside the other. */
const PAIRS: readonly (readonly [Annotation, Annotation])[] = [
  ["delayedDownscale", "prepareDelayedDownscaleUrl"],
  ["prepareDelayedDownscaleUrl", "delayedDownscale"],
  ["mirrorName", "mirrorKind"],
  ["mirrorKind", "mirrorName"],
];

/** What is wrong with the settings, a sentence each. */
export function findUseless(scaling: Scaling, annotations: Strings): string[] {
  const isSet = (key: Annotation): boolean => (annotations?.[ANNOTATIONS[key]] ?? "") !== "";
  const alone = PAIRS.filter(([one, other]) => isSet(one) && !isSet(other));
  return [
    ...alone.map(([one, other]) => `annotation ${ANNOTATIONS[one]} has no effect without ${ANNOTATIONS[other]}`),
    ...findBadTimes(scaling),
    ...findIdleForce(scaling),
  ];
}

function findBadTimes({ minTime, delay, prepareUrl }: Scaling): string[] {
  const bad: string[] = [];
  const least = minTime === undefined ? 0 : (parseGoDuration(minTime) ?? -1);
  if (least < 0)
    bad.push(`${LABELS.minTimeBetweenZonesDownscale} is "${minTime}", no duration such as 12h: downscales that depend on it are refused`);
  if (delay !== "" && prepareUrl !== "" && parsePrometheusDuration(delay) === undefined)
    bad.push(`annotation ${ANNOTATIONS.delayedDownscale} is "${delay}", no duration such as 1h30m: the zone is not scaled`);
  return bad;
}

function findIdleForce({ forcedReplicas, leader, mirror }: Scaling): string[] {
  if (forcedReplicas === undefined || leader !== undefined || mirror) return [];
  return [`annotation ${ANNOTATIONS.forceReplicas} has no effect: the zone has no leader and mirrors no resource`];
}
