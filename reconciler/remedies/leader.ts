/** Cures for a leader that is not in the group of its zone. Pure. */
import { findNear } from "../../infra/edit-distance.ts";
import { ANNOTATIONS, LABELS } from "../model/annotations.ts";
import { wouldCycle } from "../scaling/leader.ts";
import { listSome } from "../../infra/cut.ts";
import { groupKey, type Zone } from "../model/zone.ts";
import { either, how, kubectl } from "../model/remedy.ts";

/** True if it is a zone of a rollout group. */
export const isGrouped = ({ labels }: Pick<Zone, "labels">): boolean => labels[LABELS.rolloutGroup] !== undefined;

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

/** No cure moves a zone out of a group with other zones. */
function joinLeader(zone: Zone, leader: Zone, { own, all }: Surroundings & { readonly all: readonly Zone[] }): string {
  const others = all.filter((one) => isGrouped(one) && groupKey(one) === groupKey(leader) && one.uid !== leader.uid);
  const move = ({ namespace, name }: Zone, { group }: Zone): string =>
    how(
      `if ${name} belongs to group ${group}`,
      kubectl({ namespace }, `label --overwrite statefulset ${name} ${LABELS.rolloutGroup}=${group}`),
    );
  const moves = either(
    !isGrouped(leader) || others.length === 0 ? move(leader, zone) : "",
    isGrouped(leader) && own.length === 1 ? move(zone, leader) : "",
  );
  return moves || kubectl(zone, `edit statefulset ${zone.name}`);
}

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
