/**
 * The rollout of a group (§1.3-§1.7): which pods to delete next, one zone at a time.
 *
 *   outdated pods --deletePods--> pods come back updated --not ready yet: hold--> all updated and ready --finishZone--> next zone
 *
 * Everything is derived from the snapshot anew each time; nothing is remembered.
 */
import { firstOf, hold, type Hold, type Rule } from "../model/decision.ts";
import { moveToFront } from "../model/order.ts";
import { describeUnavailable, isWell } from "../model/readiness.ts";
import { isSettledByStatus, type GroupSnapshot, type Zone } from "../model/zone.ts";
import { decideZone, type RolloutDecision } from "./zone.ts";

type GroupRule = Rule<[group: GroupSnapshot], RolloutDecision>;
/** Rules that need no pods. */
type StatusRule = Rule<[group: { readonly zones: readonly Zone[] }], Hold>;

/** Any other strategy would let the StatefulSet controller replace pods behind our back (§1.3.3). */
const onDeleteOnly: StatusRule = ({ zones }) => {
  const wrong = zones.find((zone) => zone.updateStrategy !== "OnDelete");
  return (
    wrong &&
    hold("UpdateStrategyNotOnDelete", `${wrong.name} has ${wrong.updateStrategy} update strategy while OnDelete is expected`, [wrong])
  );
};

/** Nobody would make a pod of it anew, and the others should not lose any while it goes. */
const zonesStay: StatusRule = ({ zones }) => {
  const leaving = zones.filter((zone) => zone.terminating);
  if (leaving.length === 0) return undefined;
  return hold("ZoneTerminating", `${names(leaving)} ${leaving.length > 1 ? "are" : "is"} being deleted`, leaving);
};

/** A status older than the spec says nothing about the revision or the pods (§13.3). */
const statusObserved: StatusRule = ({ zones }) => {
  const stale = zones.filter((zone) => !zone.observed);
  if (stale.length === 0) return undefined;
  return hold("StatusNotObserved", `the StatefulSet controller has not observed the latest spec of ${names(stale)}`, stale);
};

const oneZoneNotReady: GroupRule = ({ zones }) => {
  const unwell = zones.filter((zone) => !isWell(zone));
  if (unwell.length < 2) return undefined;
  return hold(
    "MultipleZonesNotReady",
    `${unwell.length} zones have pods that are not ready: ${unwell.map(describeUnavailable).join("; ")}`,
    unwell,
    names(unwell),
  );
};

/** The zone that is not ready goes first, the others by name; a zone that has nothing to say lets the next one speak (§1.3.6, §1.3.7). */
const zonesInOrder: GroupRule = (group) => {
  const order = moveToFront(group.zones, (zone) => !isWell(zone)).filter((zone) => !zone.paused);
  return firstOf(order.map((zone) => () => decideZone(zone, group)))();
};

const pausedZones: StatusRule = ({ zones }) => {
  const waiting = zones.filter((zone) => zone.paused && zone.status.updated < zone.status.replicas);
  if (waiting.length === 0) return undefined;
  return hold("ZonePaused", `${names(waiting)} ${waiting.length > 1 ? "are" : "is"} paused with outdated pods`, waiting);
};

function names(zones: readonly Zone[]): string {
  return zones.map((zone) => zone.name).join(", ");
}

/** First rule with an opinion wins; silence of all means that the group is settled. */
export const decideRollout: GroupRule = firstOf<[GroupSnapshot], RolloutDecision>([
  onDeleteOnly,
  zonesStay,
  statusObserved,
  oneZoneNotReady,
  zonesInOrder,
  pausedZones,
]);

/**
 * What can be said without reading a pod: a hold, or undefined for a settled group.
 * "look" asks for the pods: some zone that is not paused has work left or is not well.
 */
export function decideByStatus(zones: readonly Zone[]): Hold | "look" | undefined {
  const early = firstOf([onDeleteOnly, zonesStay, statusObserved])({ zones });
  if (early) return early;
  return zones.every((zone) => zone.paused || isSettledByStatus(zone)) ? pausedZones({ zones }) : "look";
}
