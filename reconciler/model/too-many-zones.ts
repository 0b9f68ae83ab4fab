/** The bound of a group's size (§1.11.3). */
import { hold, type Hold } from "./decision.ts";
import type { Zone } from "./zone.ts";

/**
 * Zones are availability zones, of which there are few. Up to so many, every rule may look at all zones for each of them,
 * and nothing is remembered from one zone to the next.
 */
export const MAX_ZONES = 32;

/** Why nothing is disrupted in the group of this zone, if too many of these are zones of it. */
export function describeTooMany(zone: Pick<Zone, "group">, zones: readonly Pick<Zone, "group">[]): string | undefined {
  const { group } = zone;
  const count = group === "" ? 0 : zones.filter((other) => other.group === group).length;
  return count > MAX_ZONES ? `group ${group} has ${count} zones, more than ${MAX_ZONES}` : undefined;
}

/** The hold of a group that is larger. */
export function tooManyZones({ zones }: { readonly zones: readonly Zone[] }): Hold | undefined {
  const [first] = zones;
  const why = first && describeTooMany(first, zones);
  if (why === undefined) return undefined;
  return { ...hold("TooManyZones", `${why}: it is neither rolled out nor scaled`, zones.slice(0, 1)), dedupKey: "" };
}
