/**
 * Decides before each pod of a batch whether the deletions may continue (§1.7), from one list of the group's
 * StatefulSets: it shows zones that were paused, changed, scaled or deleted and, by their statuses, zones that have
 * lost pods since.
 *
 * Status follows pods within moments, and a batch is short. But status counts a terminating pod as ready until it stops
 * serving; only the counts by revision leave it out. They leave out pods of neither revision as well, so the pods of a
 * zone with such pods must be listed.
 */
import { firstOf, type Rule } from "../../infra/rules.ts";
import { isReady } from "../model/health.ts";
import type { Pod } from "../model/pod.ts";
import { isIdleSurplus, unavailable } from "../model/readiness.ts";
import type { Zone, ZoneWithPods } from "../model/zone.ts";
import { batchLimitOf, countRoom, whyWindowClosed } from "./decide-zone.ts";

export interface BatchView {
  readonly judged: readonly Zone[];
  /** The zone whose pods are deleted, as the batch was decided. */
  readonly zone: ZoneWithPods;
  readonly pod: Pod;
  /** It serves nothing: the state of other zones does not matter. */
  readonly servesNothing: boolean;
  readonly now: readonly Zone[];
  readonly at: number;
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
  const isSame = (["generation", "maxUnavailable", "accelerates"] as const).every(
    (key) => current?.[key] === zone[key],
  );
  return isSame && current?.bypass?.until === zone.bypass?.until ? undefined : `${zone.name} was changed`;
};

/** Stops at a window that has closed or was set meanwhile: an annotation does not change the generation. */
const windowOpen: BatchRule = ({ zone, pod, now, at }) => {
  const current = now.find(({ uid }) => uid === zone.uid);
  return isReady(pod) ? whyWindowClosed({ ...zone, window: current?.window }, at)?.message : undefined;
};

/** Counts the pods of this batch as well, as far as status shows them, and pods that were disrupted by others. */
const roomLeft: BatchRule = ({ zone, pod, now }) => {
  const current = now.find(({ uid }) => uid === zone.uid);
  if (!current || !isReady(pod)) return undefined;
  const { replicas, status } = current;
  const idle = zone.pods.filter((one) => isIdleSurplus(one, zone)).length;
  const missing = Math.max(replicas, status.replicas - idle) - status.ready;
  return missing < batchLimitOf(zone) ? undefined : `${zone.name} has ${missing} unavailable pods already`;
};

const othersHealthy: BatchRule = ({ zone, servesNothing, now }) => {
  if (servesNothing) return undefined;
  const unhealthy = now.find(
    (other) => other.uid !== zone.uid && (!other.observed || other.replicas > other.status.ready),
  );
  return unhealthy && `${unhealthy.name} is no longer healthy`;
};

/**
 * The reason to stop the batch, as a sentence; undefined if it may continue, provided that all zones of `zonesToList`
 * are steady by their pods.
 */
export const whyStopBatch: BatchRule = firstOf([
  sameZones,
  zonesStay,
  zoneUnchanged,
  windowOpen,
  roomLeft,
  othersHealthy,
]);

/** The other zones whose pods must be listed: a status does not show which surplus pods serve. */
export function zonesToList({ zone, servesNothing, now }: BatchView): Zone[] {
  if (servesNothing) return [];
  return now.filter(
    (other) => other.uid !== zone.uid && (staying(other) < other.replicas || other.status.replicas > other.replicas),
  );
}

/** Pods of the zone's two revisions that are not terminating. */
function staying({ status }: Zone): number {
  return status.updated + (status.currentRevision === status.updateRevision ? 0 : status.current);
}

/**
 * The reason why a zone whose pods were listed again has less room than when the batch was decided. Its status tells
 * neither of pods that terminate nor of a row of healthy pods that has ended (§1.13).
 */
export function whyLessRoom(decided: ZoneWithPods, current: ZoneWithPods): string | undefined {
  const { count } = unavailable(current);
  const isLess = count > unavailable(decided).count || roomOf(current) < roomOf(decided);
  return isLess ? `${current.name} has ${count} unavailable pods now` : undefined;
}

const roomOf = (zone: ZoneWithPods): number => countRoom(zone, batchLimitOf(zone));
