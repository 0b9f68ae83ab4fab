/**
 * Delayed downscale [2.6]: pods at the end of a zone are told to prepare, and go once they have been prepared for long enough.
 *
 *   wanted < current: POST to the pods that are to go, DELETE to those that stay -> all answer when they were prepared
 *     -> the last pods whose delay is over go (perhaps not all of them yet); a later pass sees to the rest
 *
 * Nothing is remembered: the pods say since when they have been prepared.
 */
import { parsePrometheusDuration } from "../../infra/duration.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { ANNOTATIONS } from "../model/annotations.ts";
import { hold, type Hold } from "../model/decision.ts";
import { podFqdn } from "../model/fqdn.ts";
import type { Zone } from "../model/zone.ts";
import { describeWait } from "./wait.ts";

export interface Delay {
  readonly ms: number;
  readonly url: URL;
}

/** The zone's delay: undefined if there is none, a hold if it cannot be read. */
export function readDelay(zone: Zone): Delay | Hold | undefined {
  const { delay, prepareUrl } = zone.scaling;
  if (delay === "" || prepareUrl === "") return undefined;
  const ms = parsePrometheusDuration(delay);
  if (ms === undefined) return invalid(zone, "delayedDownscale", delay, "no duration such as 1h30m");
  if (ms === 0) return undefined;
  const url = URL.parse(prepareUrl);
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    return invalid(zone, "prepareDelayedDownscaleUrl", prepareUrl, "no http or https URL");
  return { ms, url };
}

function invalid(zone: Zone, key: keyof typeof ANNOTATIONS, written: string, what: string): Hold {
  return hold("DelayInvalid", `${zone.name} is not scaled: its annotation ${ANNOTATIONS[key]} is "${written}", ${what}`, [zone]);
}

/** A pod of a zone, and where it is prepared. */
export interface Endpoint {
  readonly pod: string;
  readonly url: string;
}

export interface Preparation {
  /** Pods that stay: they are told so (DELETE). */
  readonly stay: readonly Endpoint[];
  /** Pods that are to go, in order: they are to prepare (POST). */
  readonly leave: readonly Endpoint[];
}

/** Whom to tell what when the zone is to have `wanted` replicas: all when it shrinks, and those that there are when it does not. */
export function planPreparation(zone: Zone, wanted: number, { url }: Delay, clusterDomain: string): Preparation {
  const endpoints = Array.from({ length: zone.replicas }, (_, i) => endpointOf(zone, zone.firstOrdinal + i, url, clusterDomain));
  const staying = Math.min(wanted, zone.replicas);
  return { stay: endpoints.slice(0, staying), leave: endpoints.slice(staying) };
}

/** The configured URL with the pod's name in place of its host; all else is kept. */
function endpointOf(zone: Zone, ordinal: number, configured: URL, clusterDomain: string): Endpoint {
  const pod = `${zone.name}-${ordinal}`;
  const url = new URL(configured);
  url.hostname = podFqdn(pod, zone.serviceName, zone.namespace, clusterDomain);
  return { pod, url: url.href };
}

// What a Date can hold, in seconds: beyond it are milliseconds or worse.
const LATEST = 8.64e12 - 1;

/** When a pod was prepared, milliseconds since the epoch, from the body of its answer `{"timestamp": <Unix seconds>}`; undefined if it does not say. */
export function readPreparedAt(body: string): number | undefined {
  try {
    const { timestamp } = JSON.parse(body) as { readonly timestamp?: unknown };
    return typeof timestamp === "number" && Number.isInteger(timestamp) && timestamp > 0 && timestamp <= LATEST
      ? timestamp * 1000
      : undefined;
  } catch {
    return undefined;
  }
}

/**
 * How many replicas the zone may shrink to now: without the longest run of pods at its end whose delay is over, never below those that stay.
 * `preparedAt` belongs to the pods that are to leave, in order, in milliseconds since the epoch.
 */
export function shrinkTo(zone: Zone, preparedAt: readonly number[], { ms }: Delay, now: number): number | Hold {
  const young = preparedAt.findLastIndex((at) => now - at < ms);
  const going = preparedAt.length - 1 - young;
  if (going > 0) return zone.replicas - going;
  const last = preparedAt[young] ?? now;
  const pod = `${zone.name}-${zone.firstOrdinal + zone.replicas - 1}`;
  const message = `${zone.name} waits: ${pod} was prepared ${describeWait(last, ms, now)}`;
  return hold("DelayNotReached", message, [zone], `${pod} since ${formatTimestamp(last)}`);
}
