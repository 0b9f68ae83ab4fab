/** May a zone be scaled down now, as far as the other zones of its group are concerned (§4.7)? */
import { parseGoDuration } from "../../infra/duration.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import type { Pod } from "../model/pod.ts";
import type { ZoneWithPods } from "../model/zone.ts";
import { goDuration, goTime } from "./words.ts";

/** Another zone of the group, and when it was last scaled down, as it is written somewhere. */
export interface OtherZone {
  readonly name: string;
  readonly lastDownscale: string | undefined;
  /** Its own label: how long others have to wait for it. */
  readonly minTime: string | undefined;
}

export interface Refusal {
  readonly reason: "DownscaleUnreadable" | "MinTimeNotElapsed" | "NeverStored" | "OtherZoneNotReady";
  readonly message: string;
}

/** Longer than any duration that makes sense; parsing takes time by the length. */
const LONGEST_DURATION = 64;

/** The first zone that has to be waited for: the label of the one that was scaled down counts, and none is permissive (§4.7c); `unreadable` is what to say of times that are none. */
export function refuseByTime(others: readonly OtherZone[], now: number, unreadable: string): Refusal | undefined {
  for (const { name, lastDownscale, minTime } of others) {
    if (lastDownscale === undefined) continue;
    const last = parseTimestamp(lastDownscale);
    if (last === undefined) return { reason: "DownscaleUnreadable", message: unreadable };
    if (minTime === undefined) continue;
    const min = minTime.length > LONGEST_DURATION ? undefined : parseGoDuration(minTime);
    if (min === undefined) return { reason: "DownscaleUnreadable", message: unreadable };
    if (now - last < min) {
      const message = `statefulset ${name} was downscaled at ${goTime(last)} and is labelled to wait ${goDuration(min)} between zone downscales`;
      return { reason: "MinTimeNotElapsed", message };
    }
  }
  return undefined;
}

/** The first zone that still loses pods, or has some that are outdated or not ready; the zone that shrinks is not looked at (§4.7d). */
export function refuseByHealth(others: readonly ZoneWithPods[]): Refusal | undefined {
  for (const other of others) {
    const message = describeShrinking(other) ?? describeUnready(other) ?? describeTerminating(other);
    if (message !== undefined) return { reason: "OtherZoneNotReady", message };
  }
  return undefined;
}

/** Its own downscale goes on until its surplus pods are gone; the status says nothing of it before the controller has observed it. */
function describeShrinking({ name, replicas, firstOrdinal, observed, pods }: ZoneWithPods): string | undefined {
  const surplus = pods.filter((pod) => {
    const place = ordinalOf(pod) - firstOrdinal;
    return place < 0 || place >= replicas;
  });
  if (observed && surplus.length === 0) return undefined;
  const unseen = observed ? "" : ", which the StatefulSet controller has not observed yet";
  const still = surplus.length === 0 ? "" : `${observed ? ", and " : "; "}${describeStill(surplus)}`;
  return `statefulset ${name} has ${replicas} replicas${unseen}${still}`;
}

function describeUnready({ name, status, pods }: ZoneWithPods): string | undefined {
  const ready = pods.filter((pod) => pod.ready).length;
  if (status.replicas === ready && status.updated === ready) return undefined;
  return `statefulset ${name} has ${status.replicas - status.updated} non-updated replicas and ${status.replicas - ready} non-ready replicas`;
}

function describeTerminating({ name, pods }: ZoneWithPods): string | undefined {
  const terminating = pods.filter((pod) => pod.terminating);
  return terminating.length === 0 ? undefined : `statefulset ${name} waits for pods: ${describeStill(terminating)}`;
}

const ordinalOf = ({ name }: Pod): number => Number(name.slice(name.lastIndexOf("-") + 1));

/** Pods that a message names. */
const MOST_NAMED = 10;

function describeStill(pods: readonly Pod[]): string {
  const named = pods.slice(0, MOST_NAMED).map((pod) => pod.name);
  const more = pods.length > MOST_NAMED ? ` and ${pods.length - MOST_NAMED} more` : "";
  const doing = pods.every((pod) => pod.terminating) ? "terminating" : "running";
  return `${named.join(", ")}${more} ${pods.length === 1 ? "is" : "are"} still ${doing}`;
}
