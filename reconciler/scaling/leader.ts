/**
 * Leader and follower (§2.1): a follower takes over the replicas of its leader, at once when it grows, after a minimum
 * time when it shrinks. A leader may itself follow another: each hop is one pass.
 */
import { firstOf, type Rule } from "../../infra/rules.ts";
import { hold } from "../model/decision.ts";
import { listSome, MAX_NAMED } from "../../infra/cut.ts";
import { leaderAmong, type Zone } from "../model/zone.ts";
import { minTimeOver } from "./min-time.ts";
import { type ZoneTimes, planScale, type ScaleDecision } from "./snapshot.ts";

type FollowerRule = Rule<[zone: Zone, snapshot: ZoneTimes], ScaleDecision>;

const notBoth: FollowerRule = (zone) => {
  const { leader, mirror } = zone.scaling;
  return (
    mirror &&
    hold(
      "LeaderAndMirror",
      `${zone.name} has a leader, ${leader}, and mirrors ${mirror.kind}/${mirror.name}; it is not scaled`,
      [zone],
    )
  );
};

const leaderExists: FollowerRule = (zone, snapshot) => {
  if (leaderAmong(snapshot.zones, zone)) return undefined;
  return hold("LeaderNotFound", `the leader of ${zone.name}, "${zone.scaling.leader}", is not in its group`, [zone]);
};

/** In a cycle every zone would follow the others for ever. */
const noCycle: FollowerRule = (zone, { zones }) => {
  const path = cycleFrom(zone, zones);
  return path && hold("LeaderCycle", `leaders form a cycle: ${path.description}`, path.zones);
};

const leaderReady: FollowerRule = (zone, snapshot) => {
  const leader = leaderAmong(snapshot.zones, zone);
  if (!leader || !zone.scaling.upscaleOnlyWhenLeaderReady || zone.scaling.forcedReplicas !== undefined)
    return undefined;
  if (leader.replicas <= zone.replicas || (leader.observed && leader.status.ready === leader.replicas))
    return undefined;
  const waiting = `${zone.name} waits to grow to ${leader.replicas}: its leader ${leader.name} has ${leader.status.ready} of ${leader.replicas} pods ready`;
  const culprit = { kind: leader.kind, name: leader.name };
  return {
    ...hold("LeaderNotReady", waiting, [zone, leader]),
    culprit,
    dedupKey: `${zone.name} to ${leader.replicas}`,
  };
};

const timeBetweenZones: FollowerRule = (zone, snapshot) => {
  const wanted = wantedReplicas(zone, snapshot);
  return wanted < zone.replicas && zone.scaling.forcedReplicas === undefined
    ? minTimeOver(zone, snapshot, "required")
    : undefined;
};

const follow: FollowerRule = (zone, snapshot) => {
  const wanted = wantedReplicas(zone, snapshot);
  const why = zone.scaling.forcedReplicas === undefined ? `following ${zone.scaling.leader}` : "forced";
  return wanted === zone.replicas ? undefined : planScale(zone, { replicas: wanted, why }, snapshot);
};

const decide = firstOf([notBoth, leaderExists, noCycle, leaderReady, timeBetweenZones, follow]);

/** The opinion on a zone that has a leader; undefined if it has none, or has the replicas that it should have. */
export function decideFollower(zone: Zone, snapshot: ZoneTimes): ScaleDecision | undefined {
  return zone.scaling.leader === undefined ? undefined : decide(zone, snapshot);
}

/** True if the decision depends on the times of the last downscales: some follower is larger than its leader. */
export function wantsDownscale(snapshot: Zones): boolean {
  return snapshot.zones.some((zone) => wantedReplicas(zone, snapshot) < zone.replicas);
}

type Zones = Pick<ZoneTimes, "zones">;

function wantedReplicas(zone: Zone, { zones }: Zones): number {
  if (zone.scaling.leader === undefined) return zone.replicas;
  return zone.scaling.forcedReplicas ?? leaderAmong(zones, zone)?.replicas ?? zone.replicas;
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
