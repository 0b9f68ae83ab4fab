/** Decides the next step in one zone of a group (§1.5). */
import { firstOf, type Rule } from "../../infra/rules.ts";
import { hold, type Hold } from "../model/decision.ts";
import { waitFor } from "../model/culprit.ts";
import type { Pod } from "../model/pod.ts";
import { listSome } from "../../infra/cut.ts";
import { waitForOrphans } from "../model/orphans.ts";
import type { DeletePods, FinishZone } from "../model/outcome.ts";
import { isOverdue, isReady, isTerminating, neverServed, servesNothing } from "../model/health.ts";
import {
  describeUnavailable,
  describeUnsteady,
  isHealthy,
  outdated,
  isSteady,
  unavailable,
} from "../model/readiness.ts";
import { type ClosedWindow, findClosedWindow } from "../model/rollout-window.ts";
import { describeFinished, isZoneRecorded, type GroupSnapshot, type ZoneWithPods } from "../model/zone.ts";

export type RolloutDecision = DeletePods | FinishZone | Hold;

/** Deletions a decision; the group is gathered again before more. */
const MAX_AT_ONCE = 50;

type ZoneRule = Rule<[zone: ZoneWithPods, group: GroupSnapshot], RolloutDecision>;

const revisionsKnown: ZoneRule = (zone) => {
  const { currentRevision, updateRevision } = zone.status;
  const missing = currentRevision === "" ? "currentRevision" : updateRevision === "" ? "updateRevision" : undefined;
  return missing && hold("RevisionUnknown", `status.${missing} of ${zone.name} is empty`, [zone]);
};

/** Pods that a StatefulSet has left behind count as another zone (§1.15). */
const orphansWell: ZoneRule = (zone, { orphans }) =>
  outdated(zone).length === 0 ? undefined : waitForOrphans(zone, orphans, "waits");

/** No pod is deleted while another zone, paused or not, is unhealthy or loses pods by a downscale (§1.7). */
const otherZonesSteady: ZoneRule = (zone, { zones }) => {
  if (outdated(zone).length === 0) return undefined;
  const unsteady = zones.filter((other) => other.uid !== zone.uid && !isSteady(other));
  if (unsteady.length === 0) return undefined;
  const message = `${listSome(unsteady.map(describeUnsteady), "; ")}; ${zone.name} waits`;
  const dedupKey = `${zone.name} for ${listSome(unsteady.map(({ name }) => name))}`;
  const waits = hold("OtherZoneNotReady", message, [zone, ...unsteady]);
  return { ...waits, ...waitFor(unsteady, zones), dedupKey };
};

/**
 * Outdated pods that serve nothing are replaced first, however unhealthy other zones are: replacing them makes nothing
 * unavailable and may cure them (§1.5.6).
 *
 *   lost                             at once, whatever the limit is
 *   never served                     at once, unless another zone tries a new template: until that has come up there, or has had its time. Pods that may
 *                                    still start do not go down in two zones for the same fault
 *   was ready, and not for 5 minutes within the limit, and not before the template has come up where it was tried: what all pods wait for may come back
 */
export const idlePods: ZoneRule = (zone, group) => {
  if (revisionsKnown(zone, group)) return undefined;
  const tried = group.zones.filter((other) => other.uid !== zone.uid).flatMap(triedPods);
  const isTried = tried.some((pod) => !isOverdue(pod, group.now));
  const idle = outdated(zone).filter((pod) => pod.health.state === "lost" || (!isTried && neverServed(pod)));
  const stalled = tried.length > 0 ? [] : outdated(zone).filter((pod) => servesNothing(pod, group.now));
  const pods = (idle.length > 0 ? idle : stalled.slice(0, countRoom(zone, zone.maxUnavailable))).slice(0, MAX_AT_ONCE);
  if (pods.length === 0) return undefined;
  const list = pods
    .map(({ name, health: { fault, served } }) => `${name} (${fault ?? (served ? "no longer ready" : "never ready")})`)
    .join(", ");
  return {
    action: "deletePods",
    zone,
    pods,
    serveNothing: true,
    message: `replacing pods that do not serve: ${list}`,
  };
};

/**
 * The pods of a zone that has begun with a new template: those that may still come up with it, and those that are yet
 * to be created.
 */
function triedPods(zone: ZoneWithPods): readonly Pick<Pod, "health">[] {
  if (isZoneRecorded(zone)) return [];
  const { pods, missing } = unavailable(zone);
  const tried = pods.filter((pod) => isTerminating(pod) || pod.revision === zone.status.updateRevision);
  // A pod that its controller does not make no longer counts in the status.
  return missing > 0 && zone.status.replicas > zone.pods.length ? [...tried, TO_BE_MADE] : tried;
}

const TO_BE_MADE: Pick<Pod, "health"> = {
  health: { state: "starting", since: undefined, served: false, fault: undefined, missingImage: undefined },
};

/** The number of pods that may go beside those that are unavailable and no longer outdated. */
export function countRoom(zone: ZoneWithPods, limit: number): number {
  return Math.max(0, limit - (unavailable(zone).count - outdated(zone).filter((pod) => !isReady(pod)).length));
}

/**
 * Deletes as many outdated pods as `maxUnavailable` leaves room for, in the order of ordinals (§1.5.5). Outdated pods
 * that are not ready use no room, as only their replacement cures them, and go before ready ones, which would become
 * unavailable in addition. A faulty template takes no further pod, as its own pods use the room.
 */
const outdatedPods: ZoneRule = (zone, { now, zones }) => {
  const candidates = outdated(zone);
  if (candidates.length === 0) return undefined;
  const [ready, unready] = [candidates.filter(isReady), candidates.filter((pod) => !isReady(pod))];
  const limit = unready.length > 0 ? zone.maxUnavailable : batchLimitOf(zone);
  const room = countRoom(zone, limit);
  if (room === 0) {
    const grows = limit < zone.maxUnavailable ? ` for now, as batches grow to ${zone.maxUnavailable}` : "";
    const most = `at most ${limit} of ${zone.name} may be unavailable${grows}`;
    const waiting = `${describeUnavailable(zone)}; ${most}, and ${count(candidates)} to be updated`;
    const waits = hold("MaxUnavailableReached", waiting, [zone, ...unavailable(zone).pods]);
    return { ...waits, ...waitFor([zone], zones), dedupKey: zone.name };
  }
  const closed = unready.length > 0 ? undefined : waitForWindow(zone, now, count(candidates));
  if (closed) return closed;
  const pods = (unready.length > 0 ? unready : ready).slice(0, Math.min(room, MAX_AT_ONCE));
  return {
    action: "deletePods",
    zone,
    pods,
    message: `updating ${pods.map((pod) => pod.name).join(", ")} to ${zone.status.updateRevision}`,
  };
};

/**
 * The reason why pods that serve stay for now (§1.12). A rollback waits for no window: the pods that still have the
 * reverted template are more likely faulty than not.
 */
export function whyWindowClosed(zone: ZoneWithPods, now: number): ClosedWindow | undefined {
  return isGoingBack(zone) ? undefined : findClosedWindow(zone.window, now);
}

function waitForWindow(zone: ZoneWithPods, now: number, left: string): Hold | undefined {
  const closed = whyWindowClosed(zone, now);
  if (!closed) return undefined;
  const { reason, message, until } = closed;
  return {
    ...hold(reason, `${zone.name} waits, and ${left} to be updated: ${message}`, [zone]),
    dedupKey: `${zone.name} ${until ?? message}`,
    ...(until !== undefined && { until }),
  };
}

/**
 * True if its outdated pods are of a template that was reverted before the zone was recorded with it (§1.5.3). Pods
 * older than the StatefulSet do not count: it was deleted without them and recreated, and its current revision is new.
 */
export function isGoingBack(zone: ZoneWithPods): boolean {
  const { createdAt: since } = zone;
  const old = outdated(zone);
  const isOwn = ({ createdAt }: Pod): boolean => since !== undefined && createdAt !== undefined && createdAt >= since;
  return isZoneRecorded(zone) && old.length > 0 && old.every(isOwn);
}

const podsReady: ZoneRule = (zone, { zones }) => {
  if (isHealthy(zone)) return undefined;
  const message = `${describeUnavailable(zone)}; ${zone.name} must be ready before the next step`;
  const { strangers = [] } = zone;
  // Pods that hold the names of its own do not go by themselves.
  const reason = strangers.length > 0 ? "ZoneOrphaned" : "ZoneNotReady";
  const waits = hold(reason, message, [zone, ...unavailable(zone).pods, ...strangers]);
  return { ...waits, ...waitFor([zone], zones), dedupKey: zone.name };
};

const finishedZone: ZoneRule = (zone) => {
  const { currentRevision, updateRevision } = zone.status;
  if (currentRevision === updateRevision) return undefined;
  return { action: "finishZone", zone, message: describeFinished(zone) };
};

function count(pods: readonly Pod[]): string {
  return pods.length === 1 ? "1 pod has" : `${pods.length} pods have`;
}

/** The first rule with a decision wins; without any, the zone is done. */
export const decideZone: ZoneRule = firstOf([
  revisionsKnown,
  orphansWell,
  otherZonesSteady,
  outdatedPods,
  podsReady,
  finishedZone,
]);

/**
 * The number of pods of a zone that its rollout may have unavailable at the moment (§1.13). If batches accelerate, the
 * limit is 1 at first, and doubles once as many pods as the limit have come up healthy in a row, up to
 * `maxUnavailable`:
 *
 *   pods that came up healthy   0   1 2   3 4 5 6   7 …
 *   limit                       1   2     4         8
 *
 * A pod that restarted, cannot come up or is no longer ready ends the row; pods that became ready after it begin
 * another one. Nothing is remembered: the pods show everything.
 */
export function batchLimitOf(zone: ZoneWithPods): number {
  return zone.accelerates ? limitAfter(countHealthy(zone), zone.maxUnavailable) : zone.maxUnavailable;
}

/** The limit after as many healthy pods in a row. */
const limitAfter = (healthy: number, most: number): number => Math.min(most, 2 ** Math.floor(Math.log2(healthy + 1)));

/** Pods of the update revision that came up without trouble since the last one that did not. */
function countHealthy({ pods, status }: ZoneWithPods): number {
  const updated = pods.filter((pod) => pod.revision === status.updateRevision && !isTerminating(pod));
  // One that is not ready ends the row for now: nothing became ready after it.
  const since = Math.max(-Infinity, ...updated.filter(isTroubled).map((pod) => readyAt(pod) ?? Infinity));
  return updated.filter((pod) => !isTroubled(pod) && (readyAt(pod) ?? -Infinity) > since).length;
}

const readyAt = (pod: Pod): number | undefined => (isReady(pod) ? pod.health.since : undefined);

const isTroubled = ({ restarts, health: { state, fault, served } }: Pod): boolean =>
  restarts > 0 || fault !== undefined || (served === true && state !== "ready");

/** The number of batches in which `count` further pods are replaced, if each comes up healthy. */
export function countBatches(zone: ZoneWithPods, count: number): number {
  const { accelerates, maxUnavailable: most } = zone;
  if (!accelerates) return Math.ceil(count / most);
  let batches = 0;
  for (let healthy = countHealthy(zone), left = count; left > 0; batches++) {
    const size = limitAfter(healthy, most);
    if (size === most) return batches + Math.ceil(left / most);
    [healthy, left] = [healthy + size, left - size];
  }
  return batches;
}
