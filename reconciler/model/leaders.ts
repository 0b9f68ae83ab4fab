/** The leaders and followers in a group. */
import { listSome, MAX_NAMED } from "../../infra/cut.ts";
import type { Zone } from "./zone.ts";

/** The leader of the zone, if it is among these. */
export function leaderAmong(zones: readonly Zone[], { scaling }: Zone): Zone | undefined {
  return scaling.leader === undefined ? undefined : zones.find(({ name }) => name === scaling.leader);
}

/** The path of a zone that is in a cycle of leaders, or follows one that is. */
interface CyclePath {
  /** The zone itself and those that it follows, the first 10 at most. */
  readonly zones: readonly Zone[];
  /** `a follows b follows a`; if it is long, the first names and the number of the others. */
  readonly description: string;
}

/** Undefined if the chain of the zone's leaders ends. */
export function cycleFrom(zone: Zone, zones: readonly Zone[]): CyclePath | undefined {
  const path: Zone[] = [];
  let next: Zone | undefined = zone;
  while (next && !path.some(({ name }) => name === next?.name)) {
    path.push(next);
    next = leaderAmong(zones, next);
  }
  if (!next) return undefined;
  const names = [...path, next].map(({ name }) => name);
  return { zones: path.slice(0, MAX_NAMED), description: listSome(names, " follows ") };
}

/** True if the zone would be in a cycle, or follow one, with this leader. */
export function wouldCycle(zone: Zone, leader: string, zones: readonly Zone[]): boolean {
  const follower = { ...zone, scaling: { ...zone.scaling, leader } };
  return cycleFrom(follower, [...zones.filter(({ name }) => name !== zone.name), follower]) !== undefined;
}
