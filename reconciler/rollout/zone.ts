/** Decides the next step in one zone of a group (§1.5). */
import { firstOf, hold, type Hold, type Rule } from "../model/decision.ts";
import type { Pod } from "../model/pod.ts";
import { describeUnavailable, describeUnsteady, isSteady, isHealthy, unavailable } from "../model/readiness.ts";
import type { GroupSnapshot, ZoneWithPods } from "../model/zone.ts";

/** Delete these pods of the zone, so that they come back at its update revision. */
export interface DeletePods {
  readonly action: "deletePods";
  readonly zone: ZoneWithPods;
  readonly pods: readonly Pod[];
  readonly message: string;
}

/** All pods of the zone are updated and ready: record it as `status.currentRevision`, which nobody else does under OnDelete. */
export interface FinishZone {
  readonly action: "finishZone";
  readonly zone: ZoneWithPods;
  readonly message: string;
}

export type RolloutDecision = DeletePods | FinishZone | Hold;
/** Deletions a decision; the group is gathered again before more. */
const MOST_AT_ONCE = 50;

type ZoneRule = Rule<[zone: ZoneWithPods, group: GroupSnapshot], RolloutDecision>;

/** Pods of another than the update revision that are not terminating. Each pod's revision is compared: after a revert, `currentRevision` does not tell (§1.5.3). */
export function outdated(zone: ZoneWithPods): Pod[] {
  return zone.pods.filter((pod) => pod.revision !== zone.status.updateRevision && !pod.terminating);
}

const revisionsKnown: ZoneRule = (zone) => {
  const { currentRevision, updateRevision } = zone.status;
  const missing = currentRevision === "" ? "currentRevision" : updateRevision === "" ? "updateRevision" : undefined;
  return missing && hold("RevisionUnknown", `status.${missing} of ${zone.name} is empty`, [zone]);
};

/** No pod is deleted while another zone, paused or not, is unhealthy or loses pods by a downscale (§1.7). */
const otherZonesSteady: ZoneRule = (zone, { zones }) => {
  if (outdated(zone).length === 0) return undefined;
  const unsteady = zones.filter((other) => other.uid !== zone.uid && !isSteady(other));
  if (unsteady.length === 0) return undefined;
  const message = `${zone.name} waits for ${unsteady.map(describeUnsteady).join("; ")}`;
  const dedupKey = `${zone.name} for ${unsteady.map(({ name }) => name).join(", ")}`;
  return { ...hold("OtherZoneNotReady", message, [zone, ...unsteady]), dedupKey };
};

/**
 * An outdated pod that cannot become ready is lost already: replacing it costs nothing and may fix it. A pod with a working container is not lost:
 * such pods are replaced only as far as `maxUnavailable` leaves room beside every other unavailable pod, updated pods that cannot start included.
 * A faulty template thus takes no further pod.
 */
const brokenPods: ZoneRule = (zone) => {
  const candidates = outdated(zone).filter((pod) => pod.broken !== undefined);
  const lost = candidates.filter((pod) => !pod.working);
  const room = zone.maxUnavailable - (unavailable(zone).count - candidates.length);
  const broken = (lost.length > 0 ? lost : candidates.slice(0, Math.max(0, room))).slice(0, MOST_AT_ONCE);
  if (broken.length === 0) return undefined;
  const list = broken.map((pod) => `${pod.name} (${pod.broken})`).join(", ");
  return { action: "deletePods", zone, pods: broken, message: `replacing pods that cannot come up: ${list}` };
};

/**
 * Deletes as many outdated pods as `maxUnavailable` leaves room for, in the order of ordinals (§1.5.5), ready ones first: a pod that is not ready
 * may be recovering and is deleted only when no ready one is left.
 */
const outdatedPods: ZoneRule = (zone) => {
  const candidates = outdated(zone);
  if (candidates.length === 0) return undefined;
  const room = zone.maxUnavailable - unavailable(zone).count;
  if (room <= 0) {
    const waiting = `${describeUnavailable(zone)}; at most ${zone.maxUnavailable} may be unavailable, and ${count(candidates)} to be updated`;
    return { ...hold("MaxUnavailableReached", waiting, [zone, ...unavailable(zone).pods]), dedupKey: zone.name };
  }
  const ready = candidates.filter((pod) => pod.ready);
  const pods = (ready.length > 0 ? ready : candidates).slice(0, Math.min(room, MOST_AT_ONCE));
  return {
    action: "deletePods",
    zone,
    pods,
    message: `updating ${pods.map((pod) => pod.name).join(", ")} to ${zone.status.updateRevision}`,
  };
};

/**
 * Gates guard pods that serve: a zone whose outdated pods are all broken or not ready is replaced without asking, so that a fixed template can rescue
 * it. A batch with a ready pod waits until the gates let its zone begin (§14.2).
 */
const outdatedPodsPastGates: ZoneRule = (zone, group) => {
  const decision = outdatedPods(zone, group);
  if (decision?.action !== "deletePods" || !decision.pods.some(({ ready }) => ready)) return decision;
  return group.gates?.holds.get(zone.uid) ?? decision;
};

const podsReady: ZoneRule = (zone) => {
  if (isHealthy(zone)) return undefined;
  return { ...hold("ZoneNotReady", `waiting for ${describeUnavailable(zone)}`, [zone, ...unavailable(zone).pods]), dedupKey: zone.name };
};

const finishedZone: ZoneRule = (zone) => {
  const { currentRevision, updateRevision } = zone.status;
  if (currentRevision === updateRevision) return undefined;
  return { action: "finishZone", zone, message: `all pods of ${zone.name} are updated to ${updateRevision} and ready` };
};

function count(pods: readonly Pod[]): string {
  return pods.length === 1 ? "1 pod has" : `${pods.length} pods have`;
}

/** The first rule with a decision wins; without any, the zone is done. */
export const decideZone: ZoneRule = firstOf([revisionsKnown, otherZonesSteady, brokenPods, outdatedPodsPastGates, podsReady, finishedZone]);
