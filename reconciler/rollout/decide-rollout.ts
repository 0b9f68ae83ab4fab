/**
 * Decides the next step of a group's rollout (§1.3-§1.7), one zone at a time.
 *
 *   outdated pods --deletePods--> pods come back updated --not ready yet: hold--> all updated and ready --finishZone--> next zone
 *
 * Each decision is derived from the snapshot alone; nothing is remembered.
 */
import { firstOf, type Rule } from "../../infra/rules.ts";
import { waitFor } from "../model/culprit.ts";
import { hold, type Hold } from "../model/decision.ts";
import { isReady, neverServed } from "../model/health.ts";
import type { DeletePods, RemainingZone } from "../model/outcome.ts";
import { refusedGroup } from "../model/refused-group.ts";
import { listSome } from "../../infra/cut.ts";
import { describeUnavailable, isHealthy, outdated } from "../model/readiness.ts";
import { moveToFront } from "../model/order.ts";
import {
  isSettledByStatus,
  isZoneRecorded,
  type GateVerdicts,
  type GroupSnapshot,
  type Zone,
  type ZoneWithPods,
} from "../model/zone.ts";
import { decideZone, idlePods, isGoingBack, type RolloutDecision, countBatches } from "./decide-zone.ts";

type GroupRule = Rule<[group: GroupSnapshot], RolloutDecision>;
type StatusRule = Rule<[group: { readonly zones: readonly Zone[] }], Hold>;

/** Any other strategy would let the StatefulSet controller replace pods by itself (§1.3.3). */
const onDeleteOnly: StatusRule = ({ zones }) => {
  const wrong = zones.find((zone) => zone.updateStrategy !== "OnDelete");
  return (
    wrong &&
    hold(
      "UpdateStrategyNotOnDelete",
      `${wrong.name} has ${wrong.updateStrategy} update strategy while OnDelete is expected`,
      [wrong],
    )
  );
};

/** Pods of a zone that is being deleted are not recreated, and the other zones should not lose pods meanwhile. */
const zonesStay: StatusRule = ({ zones }) => {
  const leaving = zones.filter((zone) => zone.terminating);
  if (leaving.length === 0) return undefined;
  return hold("ZoneTerminating", `${names(leaving)} ${areOrIs(leaving)} being deleted`, leaving);
};

/** A status older than the spec does not describe its revision or pods (§13.3). */
const statusObserved: StatusRule = ({ zones }) => {
  const stale = zones.filter((zone) => !zone.observed);
  if (stale.length === 0) return undefined;
  return hold(
    "StatusNotObserved",
    `the StatefulSet controller has not observed the latest spec of ${names(stale)}`,
    stale,
  );
};

/**
 * The zones that may be rolled out: the unhealthy one comes first, the others by name; paused ones are left out
 * (§1.3.6).
 */
function inOrder(zones: readonly ZoneWithPods[]): ZoneWithPods[] {
  return moveToFront(zones, (zone) => !isHealthy(zone)).filter((zone) => !zone.paused);
}

/**
 * Decided before any wait: otherwise two unhealthy zones would wait for each other, and neither would get the new
 * template (§1.5.6).
 */
const idlePodsFirst: GroupRule = (group) => firstOf(inOrder(group.zones).map((zone) => () => idlePods(zone, group)))();

const severalZonesNotReady: GroupRule = ({ zones }) => {
  const unhealthy = zones.filter((zone) => !isHealthy(zone));
  if (unhealthy.length < 2) return undefined;
  const message = `${listSome(unhealthy.map(describeUnavailable), "; ")}; pods of ${unhealthy.length} zones are not ready`;
  const waits = hold("MultipleZonesNotReady", message, unhealthy);
  return { ...waits, ...waitFor(unhealthy, zones), dedupKey: names(unhealthy) };
};

/**
 * The first zone with a decision wins (§1.3.7). Zones keep their order: the zones after one whose window is closed
 * wait for it. Only a zone in a rollback, which needs no window, does not wait.
 */
const zonesInOrder: GroupRule = (group) => {
  const zones = inOrder(group.zones);
  const decide = (some: readonly ZoneWithPods[]) => firstOf(some.map((zone) => () => decideZone(zone, group)))();
  const decision = decide(zones);
  return decision && waitsForWindow(decision) ? (decide(zones.filter(isGoingBack)) ?? decision) : decision;
};

const waitsForWindow = (decision: RolloutDecision): boolean =>
  decision.action === "hold" && (decision.reason === "WindowClosed" || decision.reason === "WindowInvalid");

const pausedZones: StatusRule = ({ zones }) => {
  const waiting = zones.filter((zone) => zone.paused && zone.status.updated < zone.status.replicas);
  if (waiting.length === 0) return undefined;
  return hold("ZonePaused", `${names(waiting)} ${areOrIs(waiting)} paused with outdated pods`, waiting);
};

/** A paused zone is passed over, but the group is not settled while it lacks pods, or is not recorded (§1.5). */
const pausedZonesSettled: StatusRule = ({ zones }) => {
  const paused = zones.filter((zone) => zone.paused);
  const lacking = paused.filter(({ replicas, status }) => status.ready < replicas);
  const counts = lacking.map(
    ({ name, replicas, status }) => `${name} is paused with ${status.ready} of ${replicas} pods ready`,
  );
  if (lacking.length > 0) return { ...hold("ZoneNotReady", listSome(counts, "; "), lacking), dedupKey: names(lacking) };
  const unrecorded = paused.filter((zone) => !isZoneRecorded(zone));
  if (unrecorded.length === 0) return undefined;
  return hold(
    "ZonePaused",
    `${names(unrecorded)} ${areOrIs(unrecorded)} paused and not recorded as updated`,
    unrecorded,
  );
};

const areOrIs = (zones: readonly Zone[]): string => (zones.length > 1 ? "are" : "is");

function names(zones: readonly Zone[]): string {
  return listSome(zones.map((zone) => zone.name));
}

/** The decision without gates: the first rule with one wins; without any, the group is settled. */
export const decideUngated: GroupRule = firstOf<[GroupSnapshot], RolloutDecision>([
  refusedGroup,
  onDeleteOnly,
  zonesStay,
  statusObserved,
  idlePodsFirst,
  severalZonesNotReady,
  zonesInOrder,
  pausedZones,
  pausedZonesSettled,
]);

/** True if the decision takes pods that serve: gates guard these alone. */
export function takesServing(decision: RolloutDecision): decision is DeletePods {
  return decision.action === "deletePods" && decision.pods.some(isReady);
}

/**
 * Applies the gates to the decision (§14.2). A zone whose outdated pods are all broken or not ready is replaced
 * without asking, so that a fixed template can rescue it; a batch with a ready pod waits until the gates let its zone
 * begin. After the last zone they only delay "settled": no pod depends on it.
 */
export function passGates(
  decision: RolloutDecision | undefined,
  gates: GateVerdicts | undefined,
): RolloutDecision | undefined {
  if (!decision) return gates?.beforeSettled;
  return takesServing(decision) ? (gates?.holds.get(decision.zone.uid) ?? decision) : decision;
}

export const decideRollout: GroupRule = (group) => passGates(decideUngated(group), group.gates);

/**
 * The decision by status alone, without gates: a hold, or undefined for a settled group. "readPods" means that the pods
 * must be read: a zone that is not paused is not updated yet or not healthy.
 */
export function decideByStatus(zones: readonly Zone[]): Hold | "readPods" | undefined {
  const early = firstOf([refusedGroup, onDeleteOnly, zonesStay, statusObserved])({ zones });
  if (early) return early;
  if (!zones.every((zone) => zone.paused || isSettledByStatus(zone))) return "readPods";
  return firstOf([pausedZones, pausedZonesSettled])({ zones });
}

// The remaining steps of a rollout, in order.

const MAX_NAMED = 10;

/** The zones with something left to do, and the pods as they are. */
export function listRemaining(zones: readonly ZoneWithPods[]): RemainingZone[] {
  return inOrder(zones).flatMap((zone) => {
    const unreadyFirst = moveToFront(outdated(zone), (pod) => !isReady(pod));
    const candidates = moveToFront(unreadyFirst, (pod) => pod.health.state === "lost" || neverServed(pod));
    if (candidates.length === 0 && isZoneRecorded(zone)) return [];
    const names = candidates.slice(0, MAX_NAMED).map((pod) => pod.name);
    return [
      {
        zone: zone.name,
        count: candidates.length,
        pods: names,
        atOnce: zone.maxUnavailable,
        ...(zone.accelerates && { batches: countBatches(zone, candidates.length) }),
        msPerPod: medianReadyMs(zone),
      },
    ];
  });
}

/** The same by status alone, in the order of names. */
export function countRemaining(zones: readonly Zone[]): RemainingZone[] {
  return zones
    .map((zone) => ({ zone, count: Math.max(0, zone.replicas - zone.status.updated) }))
    .filter(({ zone, count }) => !zone.paused && (count > 0 || !isZoneRecorded(zone)))
    .map(({ zone, count }) => ({ zone: zone.name, count, pods: [], atOnce: zone.maxUnavailable, msPerPod: undefined }));
}

/**
 * A pod that turned ready later than this after its start had been ready before: it does not show how long a start
 * takes.
 */
const MAX_START_MS = 6 * 3_600_000;

/**
 * The median of the milliseconds that pods of the zone took to become ready: single slow or restarted ones do not
 * matter.
 */
export function medianReadyMs({ pods }: ZoneWithPods): number | undefined {
  const times = pods
    .flatMap(({ readyAfterMs: ms }) => (ms !== undefined && ms <= MAX_START_MS ? ms : []))
    .toSorted((a, b) => a - b);
  return times[Math.floor(times.length / 2)];
}
