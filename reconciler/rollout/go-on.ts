/**
 * May a batch of deletions go on (§1.7)? Asked before each pod but the first, if all has just been read for that, by one list of the group's
 * StatefulSets: it shows who has paused, changed, scaled or deleted a zone, and by the statuses which zone has lost pods since.
 *
 * Status follows pods within moments, and a batch is short. It counts a terminating pod as ready, though, until that has stopped serving: only the
 * counts by revision leave it out. Pods of neither revision they leave out as well, so that the pods of such a zone have to be looked at.
 */
import { firstOf, type Rule } from "../model/decision.ts";
import type { Pod } from "../model/pod.ts";
import type { Zone } from "../model/zone.ts";

/** The batch, and what has become of its group. */
export interface BatchView {
  /** The zones when the batch was decided. */
  readonly judged: readonly Zone[];
  /** The zone that loses pods, as it was then. */
  readonly zone: Zone;
  /** The pod whose turn it is. */
  readonly pod: Pod;
  /** The zones as they are. */
  readonly now: readonly Zone[];
}

type BatchRule = Rule<[view: BatchView], string>;

const sameZones: BatchRule = ({ judged, now }) => {
  const uids = (zones: readonly Zone[]): string =>
    zones
      .map(({ uid }) => uid)
      .toSorted()
      .join();
  return uids(judged) === uids(now) ? undefined : "the group has other zones than before";
};

const zonesStay: BatchRule = ({ now }) => {
  const leaving = now.find((zone) => zone.terminating);
  return leaving && `${leaving.name} is being deleted`;
};

const zoneUnchanged: BatchRule = ({ zone, now }) => {
  const current = now.find(({ uid }) => uid === zone.uid);
  if (current?.paused) return `${zone.name} was paused`;
  const same = current?.generation === zone.generation && current.maxUnavailable === zone.maxUnavailable;
  return same ? undefined : `${zone.name} was changed`;
};

/** The pods of the batch count as well, as far as status has noticed: pods that others took are the rest. */
const roomLeft: BatchRule = ({ zone, pod, now }) => {
  const current = now.find(({ uid }) => uid === zone.uid);
  if (!current || !pod.ready || missingByStatus(current) < zone.maxUnavailable) return undefined;
  return `${zone.name} has ${missingByStatus(current)} unavailable pods already`;
};

const othersHealthy: BatchRule = ({ zone, now }) => {
  const unhealthy = now.find((other) => other.uid !== zone.uid && (!other.observed || missingByStatus(other) > 0));
  return unhealthy && `${unhealthy.name} is no longer healthy`;
};

const othersKeepPods: BatchRule = ({ zone, now }) => {
  const shrinking = now.find((other) => other.uid !== zone.uid && other.status.replicas > other.replicas);
  return shrinking && `${shrinking.name} has more pods than it is to have`;
};

/** Why the batch may not go on, in a sentence; undefined if it may, provided that the pods of `zonesToLookAt` are all ready. */
export const whyStopBatch: BatchRule = firstOf([sameZones, zonesStay, zoneUnchanged, roomLeft, othersHealthy, othersKeepPods]);

/** The other zones that status alone cannot answer for. */
export function zonesToLookAt({ zone, now }: BatchView): Zone[] {
  return now.filter((other) => other.uid !== zone.uid && staying(other) < other.replicas);
}

/** How many pods are not ready, or are not there, as far as status tells. */
function missingByStatus({ replicas, status }: Zone): number {
  return Math.max(replicas, status.replicas) - status.ready;
}

/** Pods of the zone's two revisions that are not terminating. */
function staying({ status }: Zone): number {
  return status.updated + (status.currentRevision === status.updateRevision ? 0 : status.current);
}
