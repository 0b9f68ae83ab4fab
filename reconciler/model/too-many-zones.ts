/** The bound of a group's size (§1.3). */
import { hold, type Hold } from "./decision.ts";
import type { Zone } from "./zone.ts";

/** A group of as many zones costs a tick as many lists of pods, and its RolloutGroup 200 kB of status. */
export const MAX_ZONES = 1000;

/** The hold of a group that is larger. */
export function tooManyZones({ zones }: { readonly zones: readonly Zone[] }): Hold | undefined {
  if (zones.length <= MAX_ZONES) return undefined;
  const [first] = zones;
  const message = `group ${first?.group} has ${zones.length} zones; a group of more than ${MAX_ZONES} is neither rolled out nor scaled`;
  return { ...hold("TooManyZones", message, zones.slice(0, 1)), dedupKey: "" };
}
