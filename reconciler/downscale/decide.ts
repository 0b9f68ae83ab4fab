/** May a zone be scaled down now, as far as the other zones of its group are concerned [4.7]? */
import { parseGoDuration } from "../../infra/duration.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
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
  readonly reason: "DownscaleUnreadable" | "MinTimeNotElapsed" | "OtherZoneNotReady";
  readonly message: string;
}

/** Longer than any duration that makes sense; parsing takes time by the length. */
const LONGEST_DURATION = 64;

/** The first zone that has to be waited for: the label of the one that was scaled down counts, and none is permissive [4.7c]; `unreadable` is what to say of times that are none. */
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

/** The first zone with pods that are outdated or not ready; its own pods do not count for the zone that shrinks [4.7d]. */
export function refuseByHealth(others: readonly ZoneWithPods[]): Refusal | undefined {
  for (const { name, status, pods } of others) {
    const ready = pods.filter((pod) => pod.ready).length;
    if (status.replicas === ready && status.updated === ready) continue;
    const message = `statefulset ${name} has ${status.replicas - status.updated} non-updated replicas and ${status.replicas - ready} non-ready replicas`;
    return { reason: "OtherZoneNotReady", message };
  }
  return undefined;
}
