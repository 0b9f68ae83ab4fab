/**
 * Cures for a leader that is not in the group of its zone, and for a group whose label is mistyped: towards the group
 * with more zones. Pure.
 */
import { findNear } from "../../infra/edit-distance.ts";
import { ANNOTATIONS, LABELS } from "../model/annotations.ts";
import { wouldCycle } from "../model/leaders.ts";
import { listSome } from "../../infra/cut.ts";
import { groupKey, type Zone } from "../model/zone.ts";
import { either, how, kubectl } from "../model/remedy.ts";

/** True if it is a zone of a rollout group. */
export const isGrouped = ({ labels }: Pick<Zone, "labels">): boolean => labels[LABELS.rolloutGroup] !== undefined;

/** The group that a mistyped label of a zone means, by the zone's UID. */
type MeantGroups = ReadonlyMap<string, string>;

/**
 * A zone that is alone in its group, beside a group of nearly the same name that more speaks for. `all` are the
 * StatefulSets of any namespaces. Of two such groups one is meant, never each by the other.
 */
export function findMeantGroups(all: readonly Zone[]): MeantGroups {
  const groups = [...Map.groupBy(all.filter(isGrouped), groupKey).values()];
  const meant = new Map<string, string>();
  for (const own of groups) {
    const [zone] = own;
    if (!zone || own.length > 1) continue;
    const others = groups.filter(([first]) => first?.namespace === zone.namespace && first.group !== zone.group);
    const names = others.flatMap(([first]) => first?.group ?? []).filter((name) => !isOther(zone.group, name));
    const [near] = findNear(zone.group, names);
    const found = others.find(([first]) => first?.group === near);
    if (found && isMeant(found, own)) meant.set(zone.uid, near ?? "");
  }
  return meant;
}

/** More zones; otherwise the name that begins the names of more of their StatefulSets; otherwise the longer name. */
function isMeant(one: readonly Zone[], other: readonly Zone[]): boolean {
  const [a = "", b = ""] = [one[0]?.group, other[0]?.group];
  const sets = [...one, ...other].map(({ name }) => name);
  const count = (group: string): number => sets.filter((name) => name.startsWith(group)).length;
  return (one.length - other.length || count(a) - count(b) || a.length - b.length || (a < b ? 1 : -1)) > 0;
}

/** Names that differ only in the letter or number of a zone are two, and no typo. */
const isOther = (one: string, other: string): boolean => withoutZone(one) === withoutZone(other);
const withoutZone = (name: string): string => name.replaceAll(/\d+[a-z]?(?=[-.]|$)|[a-z](?=[-.]|$)/g, "");

interface Surroundings {
  /** The zones of its group. */
  readonly own: readonly Zone[];
  /** The StatefulSets of its namespace; undefined if they were not read. */
  readonly all: readonly Zone[] | undefined;
}

/** The cure for a zone whose leader is not among the zones of its group. */
export function cureLeader(zone: Zone, { own, all }: Surroundings): string {
  const leader = all?.find(({ namespace, name }) => namespace === zone.namespace && name === zone.scaling.leader);
  return leader && all ? joinLeader(zone, leader, { own, all }) : nameLeader(zone, own, all !== undefined);
}

/** No cure moves a zone out of a group with other zones, except into a larger one. */
function joinLeader(zone: Zone, leader: Zone, { own, all }: Surroundings & { readonly all: readonly Zone[] }): string {
  if (!isGrouped(leader)) return how(`if it belongs to group ${zone.group}`, labelGroup(leader, zone.group));
  const meant = findMeantGroups(all);
  for (const one of [zone, leader]) {
    const group = meant.get(one.uid);
    if (group !== undefined) return labelGroup(one, group);
  }
  const zonesOfLeader = all.filter((one) => isGrouped(one) && groupKey(one) === groupKey(leader)).length;
  if (own.length === 1 || zonesOfLeader > own.length) return labelGroup(zone, leader.group);
  if (zonesOfLeader === 1) return labelGroup(leader, zone.group);
  return kubectl(zone, `edit statefulset ${zone.name}`);
}

const labelGroup = (zone: Zone, group: string): string =>
  kubectl(zone, `label --overwrite statefulset ${zone.name} ${LABELS.rolloutGroup}=${group}`);

/** There is no such StatefulSet, or it is not known where it is. */
function nameLeader(zone: Zone, own: readonly Zone[], isGone: boolean): string {
  const { leader = "" } = zone.scaling;
  const set = (change: string): string =>
    kubectl(zone, `annotate --overwrite statefulset ${zone.name} ${ANNOTATIONS.downscaleLeader}${change}`);
  const possible = own
    .map(({ name }) => name)
    .filter((name) => name !== zone.name && !isOther(leader, name) && !wouldCycle(zone, name, own));
  const [near] = findNear(leader, possible);
  if (near !== undefined) return set(`=${near}`);
  const [first] = possible;
  return either(
    isGone ? "" : how("see where it is", kubectl(zone, `get statefulset ${leader} --show-labels`)),
    first === undefined ? "" : how(`name one of ${listSome(possible)}`, set(`=${first}`)),
    how("if it should follow no zone", set("-")),
  );
}
