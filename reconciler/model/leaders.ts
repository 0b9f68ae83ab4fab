/** The leaders and followers in a group, found in one pass over its zones. */
import { MAX_NAMED } from "./list-some.ts";
import { perList } from "../../infra/once.ts";
import type { Zone } from "./zone.ts";

const byName = perList((zones: readonly Zone[]) => new Map(zones.toReversed().map((zone) => [zone.name, zone])));

/** The leader of the zone, if it is among these. */
export function leaderAmong(zones: readonly Zone[], { scaling }: Zone): Zone | undefined {
  return scaling.leader === undefined ? undefined : byName(zones).get(scaling.leader);
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
  const length = cycles(zones).get(zone.name);
  if (length === undefined) return undefined;
  const path: Zone[] = [];
  for (
    let next: Zone | undefined = zone;
    next && path.length <= Math.min(length, MAX_NAMED);
    next = leaderAmong(zones, next)
  )
    path.push(next);
  const isWhole = path.length > length;
  const named = path.slice(0, isWhole ? undefined : MAX_NAMED).map(({ name }) => name);
  const description = named.join(" follows ") + (isWhole ? "" : ` and ${length - named.length} more`);
  return { zones: path.slice(0, Math.min(length, MAX_NAMED)), description };
}

/** True if the zone would be in a cycle, or follow one, with this leader. */
export function wouldCycle(zone: Zone, leader: string, zones: readonly Zone[]): boolean {
  const follower = { ...zone, scaling: { ...zone.scaling, leader } };
  return cycleFrom(follower, [...zones.filter(({ name }) => name !== zone.name), follower]) !== undefined;
}

/**
 * For each zone on the path to a cycle, by its name, the number of zones until one repeats. Each zone is visited once.
 */
const cycles = perList((zones: readonly Zone[]): ReadonlyMap<string, number> => {
  const lengths = new Map<string, number>();
  const walked = new Set<string>();
  for (const zone of zones) {
    const path = new Map<string, number>();
    let end: Zone | undefined = zone;
    for (; end && !walked.has(end.name); end = leaderAmong(zones, end)) {
      walked.add(end.name);
      path.set(end.name, path.size);
    }
    if (!end) continue;
    const closedAt = path.get(end.name);
    const beyond = lengths.get(end.name);
    for (const [name, place] of path) {
      if (closedAt !== undefined) lengths.set(name, path.size - Math.min(place, closedAt));
      else if (beyond !== undefined) lengths.set(name, path.size - place + beyond);
    }
  }
  return lengths;
});
