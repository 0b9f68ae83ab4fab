/**
 * Do the pods of the other zones of a group allow a downscale (§4.7d)? The minimum time between downscales is in
 * scaling/min-time.ts.
 */
import { isReady, isTerminating } from "../model/health.ts";
import type { Pod } from "../model/pod.ts";
import {
  countAwaited,
  isGivenUp,
  type Shrink,
  type ShrinkInGroup,
  countMissing,
  isHealthy,
  isSurplus,
  outdated,
  withoutIdleSurplus,
} from "../model/readiness.ts";
import { listSome } from "../../infra/cut.ts";
import { describeOrphans } from "../model/orphans.ts";
import type { GatheredGroup, ZoneWithPods } from "../model/zone.ts";

export interface DownscaleRefusal {
  /** Those with `Unknown`: the API server could not say. */
  readonly reason:
    | "DownscaleUnreadable"
    | "DownscalesUnknown"
    | "GroupUnknown"
    | "LabelsTooLong"
    | "MinTimeNotElapsed"
    | "NeverStored"
    | "OtherZoneNotReady"
    | "TooManyZones"
    | "ZonesUnknown";
  /** The explanation after `is not allowed because`, in the original's words. */
  readonly message: string;
}

/**
 * Refuses because of the first orphaned zone that is not well, or of the first other zone by `whyRefused` (§4.7d). The
 * shrinking zone is not checked.
 */
export function refuseByHealth(
  { zones, orphans = [] }: Pick<GatheredGroup, "zones" | "orphans">,
  shrink: Shrink,
): DownscaleRefusal | undefined {
  const unwell = orphans.find((zone) => !isHealthy(zone));
  if (unwell) return { reason: "OtherZoneNotReady", message: describeOrphans(unwell) };
  const own = zones.find(({ uid }) => uid === shrink.zone.uid);
  const mayBeOutdated = own !== undefined && endsRollout(own, shrink.size);
  for (const other of zones.filter((zone) => zone !== own)) {
    const message = whyRefused(other, { ...shrink, zones, mayBeOutdated });
    if (message !== undefined) return { reason: "OtherZoneNotReady", message };
  }
  return undefined;
}

interface JudgedShrink extends ShrinkInGroup {
  /** Pods of other zones may be outdated, if they are ready (`endsRollout`). */
  readonly mayBeOutdated: boolean;
}

/**
 * Why the other zone refuses the downscale, in the original's words: it still loses pods, or has outdated or unready
 * ones (§4.7d). Pods that it is not to have, and that never served, do not count; pods that are to go as well and do not
 * come up do not count either.
 */
export function whyRefused(whole: ZoneWithPods, shrink: JudgedShrink): string | undefined {
  const other = withoutIdleSurplus(whole);
  const givenUp = other.pods.filter((pod) => isGivenUp(pod, other, shrink));
  return describeShrinking(other) ?? describeUnready(other, givenUp, shrink) ?? describeTerminating(other, givenUp);
}

/**
 * True if a zone that shrinks to this size loses all of its pods that are outdated, and has some. Their rollout may wait
 * for this downscale: a budget by partition keeps pods whose peers are gone. The zones after it would wait for that
 * rollout.
 */
export function endsRollout(zone: ZoneWithPods, size: number): boolean {
  if (zone.paused) return false;
  const { firstOrdinal } = zone;
  const old = outdated(zone);
  return old.length > 0 && old.every((pod) => isSurplus(pod, { firstOrdinal, replicas: size }));
}

/**
 * A downscale lasts until the surplus pods are gone. The status does not show it before the controller has observed the
 * spec.
 */
function describeShrinking(zone: ZoneWithPods): string | undefined {
  const { name, replicas, observed, pods } = zone;
  const surplus = pods.filter((pod) => isSurplus(pod, zone));
  if (observed && surplus.length === 0) return undefined;
  const unobserved = observed ? "" : ", which the StatefulSet controller has not observed yet";
  const surplusText = surplus.length === 0 ? "" : `${observed ? ", and " : "; "}${describePods(surplus)}`;
  return `statefulset ${name} has ${replicas} replicas${unobserved}${surplusText}`;
}

/**
 * Compares the pods that the zone is to have with those that are ready, and with those that are updated. Pods that are
 * given up count on no side, missing pods only if others wait for them. As in a rollout, the larger of spec and status
 * replicas counts: the status leaves out a pod that cannot be made again.
 */
function describeUnready(zone: ZoneWithPods, givenUp: readonly Pod[], shrink: JudgedShrink): string | undefined {
  const { name, replicas, status, pods } = zone;
  const unawaited = countMissing(zone, pods) - countAwaited(zone, pods, shrink);
  const isUpdated = (pod: Pod): boolean => !isTerminating(pod) && pod.revision === status.updateRevision;
  const expected = Math.max(replicas, status.replicas) - givenUp.length - unawaited;
  const updated = status.updated - givenUp.filter(isUpdated).length;
  const ready = pods.filter(isReady).length;
  if (expected === ready && (updated === ready || shrink.mayBeOutdated)) return undefined;
  return `statefulset ${name} has ${expected - updated} non-updated replicas and ${expected - ready} non-ready replicas`;
}

function describeTerminating({ name, pods }: ZoneWithPods, givenUp: readonly Pod[]): string | undefined {
  const terminating = pods.filter((pod) => isTerminating(pod) && !givenUp.includes(pod));
  return terminating.length === 0 ? undefined : `statefulset ${name} waits for pods: ${describePods(terminating)}`;
}

function describePods(pods: readonly Pod[]): string {
  const named = listSome(pods.map(({ name }) => name));
  const activity = pods.every(isTerminating) ? "terminating" : "running";
  return `${named} ${pods.length === 1 ? "is" : "are"} still ${activity}`;
}
