/** The time that must lie between scaling down two zones of a group (§2.2). */
import { parseGoDuration } from "../../infra/duration.ts";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { ANNOTATIONS, LABELS } from "../model/annotations.ts";
import { hold, type Hold } from "../model/decision.ts";
import type { Zone } from "../model/zone.ts";
import type { ZoneTimes } from "./snapshot.ts";
import { describeWait } from "./wait.ts";

interface Downscale {
  readonly zone: Zone;
  readonly at: number;
}

/**
 * The hold that keeps the zone from shrinking now, if any: another zone was scaled down, by annotation, zone tracker or downscale Lease, and the time
 * of the zone's own label is not over. What cannot be read holds too; so does a label that is missing, where it is required.
 * A zone may shrink again and again; a downscale in the future, by a clock that is ahead, counts as just now.
 */
export function minTimeOver(zone: Zone, snapshot: ZoneTimes, label: "required" | "optional"): Hold | undefined {
  const { minTime } = zone.scaling;
  if (minTime === undefined && label === "optional") return undefined;
  const last = lastDownscale(zone, snapshot);
  if (last === undefined || "action" in last) return last;
  const unknown = (what: string): Hold =>
    hold("MinTimeUnknown", `${zone.name} is not scaled down, as ${last.zone.name} has been: ${what}`, [zone]);
  if (minTime === undefined) return unknown(`it has no label ${LABELS.minTimeBetweenZonesDownscale}`);
  const ms = parseGoDuration(minTime);
  if (ms === undefined || ms < 0) return unknown(`its label ${LABELS.minTimeBetweenZonesDownscale} is "${minTime}", which is no duration`);
  if (snapshot.now - last.at > ms) return undefined;
  const message = `${zone.name} waits: ${last.zone.name} was downscaled ${describeWait(last.at, ms, snapshot.now)}`;
  const cause = `${zone.name} after ${last.zone.name} since ${formatTimestamp(last.at)}`;
  return hold("MinTimeBetweenZones", message, [zone, last.zone], cause);
}

/** The newest downscale of any other zone, or the hold of one that cannot be read. */
function lastDownscale(zone: Zone, { zones, tracked }: ZoneTimes): Downscale | Hold | undefined {
  if (!tracked) return hold("MinTimeUnknown", `${zone.name} is not scaled down: when other zones were scaled down cannot be read`, [zone]);
  let newest: Downscale | undefined;
  for (const other of zones.filter(({ uid }) => uid !== zone.uid)) {
    for (const [where, written] of [
      [`annotation ${ANNOTATIONS.lastDownscale}`, other.scaling.lastDownscale],
      ["entry in the zone tracker", tracked.get(other.name)],
    ] as const) {
      if (written === undefined) continue;
      const at = parseTimestamp(written);
      if (at === undefined) {
        return hold(
          "MinTimeUnknown",
          `${zone.name} is not scaled down: the ${where} of ${other.name} is "${written}", which is no timestamp`,
          [zone, other],
        );
      }
      if (newest === undefined || at > newest.at) newest = { zone: other, at };
    }
  }
  return newest;
}
