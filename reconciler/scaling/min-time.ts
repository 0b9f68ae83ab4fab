/**
 * The minimum time between downscales of two zones of a group: both rules of it, the reconciler's (§2.2) and the
 * webhook's (§4.7c).
 *
 *                          minTimeOver, the reconciler        refuseByTime, the webhook
 *   the label that counts  of the zone that wants to shrink   of each zone that was scaled down
 *   without that label     a follower waits, a mirror goes    the zone is not waited for
 *   over                   later than the time                at the time
 *   read from              annotation, tracker, Lease         the tracker in its mode, else annotation and tracker; Lease
 *   cannot be read         waits                              refuses
 *
 * They differ because the original's controller and webhook do, and users have labelled their zones for both. A
 * downscale by the reconciler passes the webhook as well if the pods are prepared: then both must agree. A downscale in
 * the future, by a clock that is ahead, is not over.
 */
import { describeWait, formatGoDuration, parseGoDuration } from "../../infra/duration.ts";
import { formatGoTime, formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { ANNOTATIONS, LABELS } from "../model/annotations.ts";
import { hold, type Hold } from "../model/decision.ts";
import type { DownscaleRefusal } from "../downscale/decide-admission.ts";
import type { GatheredGroup, Zone } from "../model/zone.ts";
import type { ZoneTimes } from "./snapshot.ts";

interface LastDownscale {
  readonly zone: Zone;
  readonly at: number;
}

/**
 * The hold that keeps the zone from shrinking now, if any: another zone was scaled down, by annotation, zone tracker or
 * downscale Lease, and the zone's own minimum time is not over. An unreadable time holds too, and so does a missing
 * minimum time where it is required. A zone may shrink again and again; a downscale in the future, by a clock that is
 * ahead, counts as just now.
 */
export function minTimeOver(zone: Zone, snapshot: ZoneTimes, label: "required" | "optional"): Hold | undefined {
  const { minTime } = zone.scaling;
  if (minTime === undefined && label === "optional") return undefined;
  const last = lastDownscale(zone, snapshot);
  if (last === undefined || "action" in last) return last;
  const unknown = (what: string): Hold =>
    hold("MinTimeUnknown", `${zone.name} is not scaled down, as ${last.zone.name} has been: ${what}`, [zone]);
  if (minTime === undefined) return unknown(`it has no annotation ${LABELS.minTimeBetweenZonesDownscale}`);
  const ms = parseGoDuration(minTime);
  if (ms === undefined || ms < 0)
    return unknown(`its ${LABELS.minTimeBetweenZonesDownscale} is "${minTime}", which is not a duration`);
  if (snapshot.now - last.at > ms) return undefined;
  const message = `${zone.name} waits: ${last.zone.name} was downscaled ${describeWait(last.at, ms, snapshot.now)}`;
  const dedupKey = `${zone.name} after ${last.zone.name} since ${formatTimestamp(last.at)}`;
  return { ...hold("MinTimeBetweenZones", message, [zone, last.zone]), dedupKey, until: last.at + ms };
}

/** The newest downscale of any other zone, or the hold of one that cannot be read. */
function lastDownscale(zone: Zone, { zones, tracked }: ZoneTimes): LastDownscale | Hold | undefined {
  if (zones.every(({ uid }) => uid === zone.uid)) return undefined;
  if (!tracked)
    return hold("MinTimeUnknown", `${zone.name} is not scaled down: when other zones were scaled down cannot be read`, [
      zone,
    ]);
  let newest: LastDownscale | undefined;
  for (const other of zones.filter(({ uid }) => uid !== zone.uid)) {
    const written = [
      [`annotation ${ANNOTATIONS.lastDownscale}`, other.scaling.lastDownscale],
      ["entry in the zone tracker", tracked.get(other.name)],
    ] as const;
    for (const [where, text] of written) {
      if (text === undefined) continue;
      const at = parseTimestamp(text);
      if (at === undefined) {
        const message = `${zone.name} is not scaled down: the ${where} of ${other.name} is "${text}", which is not a timestamp`;
        return hold("MinTimeUnknown", message, [zone, other]);
      }
      if (at > (newest?.at ?? -Infinity)) newest = { zone: other, at };
    }
  }
  return newest;
}

/** The orphaned zones whose downscales count. A zone that was created again has its own times. */
export const timedOrphans = ({ orphans = [] }: GatheredGroup): readonly Zone[] =>
  orphans.filter(({ orphaned }) => orphaned !== "replaced");

/** Another zone of the group, and when it was last scaled down, as it is written somewhere. */
interface OtherZone {
  readonly name: string;
  readonly lastDownscale: string | undefined;
  /** Its own label: how long others have to wait for it. */
  readonly minTime: string | undefined;
}

/** Longer than any duration that makes sense; parsing takes time by the length. */
const MAX_DURATION_LENGTH = 64;

/**
 * The first zone that has to be waited for: the label of the one that was scaled down counts, and a zone without one
 * is not waited for (§4.7c); `unreadable` is the message for times that cannot be read.
 */
export function refuseByTime(
  others: readonly OtherZone[],
  now: number,
  unreadable: string,
): DownscaleRefusal | undefined {
  for (const { name, lastDownscale, minTime } of others) {
    if (lastDownscale === undefined) continue;
    const last = parseTimestamp(lastDownscale);
    if (last === undefined) return { reason: "DownscaleUnreadable", message: unreadable };
    if (minTime === undefined) continue;
    const min = minTime.length > MAX_DURATION_LENGTH ? undefined : parseGoDuration(minTime);
    if (min === undefined) return { reason: "DownscaleUnreadable", message: unreadable };
    if (now - last < min) {
      const message = `statefulset ${name} was downscaled at ${formatGoTime(last)} and is labelled to wait ${formatGoDuration(min)} between zone downscales`;
      return { reason: "MinTimeNotElapsed", message };
    }
  }
  return undefined;
}
