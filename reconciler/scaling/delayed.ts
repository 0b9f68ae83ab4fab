/**
 * Delayed downscale (§2.6): the pods at the end of a zone prepare, and go once they have been prepared for long enough.
 *
 *   wanted < current: POST to the pods that are to go, DELETE to those that stay -> all answer when they were prepared
 *     -> the last pods whose delay is over go (perhaps not all of them yet); a later pass handles the rest
 *
 * Nothing is remembered: the pods report since when they have been prepared.
 */
import type { PodTargets } from "../../infra/call-pods.ts";
import { describeWait, parsePrometheusDuration } from "../../infra/duration.ts";
import { formatTimestamp, LAST_SECOND } from "../../infra/timestamp.ts";
import { ANNOTATIONS, MAX_VALUE_LENGTH } from "../model/annotations.ts";
import { hold, type Hold } from "../model/decision.ts";
import { checkServiceName, podUrl } from "../downscale/preparation.ts";
import type { Zone } from "../model/zone.ts";

export interface Delay {
  readonly ms: number;
  readonly url: URL;
}

/** The zone's delay: undefined if there is none, a hold if it cannot be read. */
export function readDelay(zone: Zone): Delay | Hold | undefined {
  const { delay, prepareUrl } = zone.scaling;
  if (delay === "" || prepareUrl === "") return undefined;
  const ms = parsePrometheusDuration(delay);
  if (ms === undefined)
    return invalid(zone, `its annotation ${ANNOTATIONS.delayedDownscale} is "${delay}", not a duration such as 1h30m`);
  if (ms === 0) return undefined;
  const url = readUrl(prepareUrl);
  // The message does not repeat the URL: it may contain a password.
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    return invalid(
      zone,
      `its annotation ${ANNOTATIONS.prepareDelayedDownscaleUrl} is not an http or https URL of at most ${MAX_VALUE_LENGTH} characters`,
    );
  const wrong = checkServiceName(zone.serviceName);
  return wrong ? invalid(zone, `its ${wrong}`) : { ms, url };
}

const readUrl = (text: string): URL | null => (text.length > MAX_VALUE_LENGTH ? null : URL.parse(text));

function invalid(zone: Zone, what: string): Hold {
  return hold("DelayInvalid", `${zone.name} is not scaled: ${what}`, [zone]);
}

export interface Endpoint {
  readonly pod: string;
  readonly url: string;
}

/** Pods with neighbouring ordinals. */
export type Endpoints = PodTargets<Endpoint>;

interface PreparationPlan {
  /** Pods that stay: they are notified of it (DELETE). */
  readonly staying: Endpoints;
  /** Pods that are to go, in order: they are to prepare (POST). */
  readonly leaving: Endpoints;
}

interface PreparationTarget extends Pick<Delay, "url"> {
  readonly clusterDomain: string;
}

/**
 * The pods to call when the zone is to have `wanted` replicas: all when it shrinks, and only those that exist when it
 * does not.
 */
export function planPreparation(
  zone: Zone,
  wanted: number,
  { url, clusterDomain }: PreparationTarget,
): PreparationPlan {
  const staying = Math.min(wanted, zone.replicas);
  const dns = { ...zone, clusterDomain };
  const endpointsOf = (from: number, to: number): Endpoints => ({
    count: to - from,
    *[Symbol.iterator]() {
      for (let place = from; place < to; place++) {
        const pod = `${zone.name}-${zone.firstOrdinal + place}`;
        yield { pod, url: podUrl(url, pod, dns) };
      }
    },
  });
  return { staying: endpointsOf(0, staying), leaving: endpointsOf(staying, zone.replicas) };
}

/**
 * The time at which a pod was prepared, milliseconds since the epoch, from the body of its answer
 * `{"timestamp": <Unix seconds>}`; undefined without a timestamp. Numbers beyond the year 9999 are milliseconds or worse.
 */
export function readPreparedAt(body: string): number | undefined {
  try {
    const { timestamp } = JSON.parse(body) as { readonly timestamp?: unknown };
    return typeof timestamp === "number" && Number.isInteger(timestamp) && timestamp > 0 && timestamp <= LAST_SECOND
      ? timestamp * 1000
      : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The last of the pods that are to go whose delay is not over: its place among them, and when it was prepared,
 * milliseconds since the epoch.
 */
export interface YoungPod {
  readonly place: number;
  readonly preparedAt: number;
}

/**
 * Takes the pods' answers in any order and keeps only the youngest place. A pod is judged at the moment of its answer.
 */
export function foldAges({ ms }: Delay) {
  let last: YoungPod | undefined;
  return {
    add(place: number, preparedAt: number, now: number): void {
      if (now - preparedAt < ms && place > (last?.place ?? -1)) last = { place, preparedAt };
    },
    youngest: (): YoungPod | undefined => last,
  };
}

/** The pods that are to go, all of which have answered. */
interface LeavingPods {
  readonly count: number;
  /** The last of them whose delay is not over. */
  readonly youngest: YoungPod | undefined;
}

/**
 * The replicas that the zone may shrink to at `now`, milliseconds since the epoch: without the longest run of pods at
 * its end whose delay is over, and never fewer than the pods that stay.
 */
export function shrinkTo(
  zone: Zone,
  { count, youngest: young }: LeavingPods,
  { ms, now }: Pick<Delay, "ms"> & { readonly now: number },
): number | Hold {
  const removable = count - 1 - (young?.place ?? -1);
  if (removable > 0 || !young) return zone.replicas - removable;
  const { preparedAt } = young;
  const pod = `${zone.name}-${zone.firstOrdinal + zone.replicas - 1}`;
  const message = `${zone.name} waits: ${pod} was prepared ${describeWait(preparedAt, ms, now)}`;
  return {
    ...hold("DelayNotReached", message, [zone]),
    dedupKey: `${pod} since ${formatTimestamp(preparedAt)}`,
    until: preparedAt + ms,
  };
}
