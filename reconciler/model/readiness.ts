/**
 * Which pods of a zone are unavailable (§1.4). Status and pods both lag, so the worse of the two counts, and so does the larger of spec and
 * status replicas: while a pod is gone and its successor cannot be created (a quota, a webhook), status counts one replica less, all ready.
 */
import type { Pod } from "./pod.ts";
import type { ZoneWithPods } from "./zone.ts";

export interface Unavailable {
  /** Pods that are terminating or not ready. */
  readonly pods: readonly Pod[];
  /** Pods that should exist, but do not. */
  readonly missing: number;
  /** How many are unavailable in all; 0 means that the zone is well. */
  readonly count: number;
}

export function unavailable(zone: ZoneWithPods): Unavailable {
  const expected = Math.max(zone.replicas, zone.status.replicas);
  const pods = zone.pods.filter((pod) => !pod.ready);
  const missing = Math.max(0, expected - zone.pods.length);
  return { pods, missing, count: Math.max(expected - zone.status.ready, pods.length + missing) };
}

/** A zone has not-ready pods if status or pods say so. */
export function isWell(zone: ZoneWithPods): boolean {
  return unavailable(zone).count === 0;
}

/** A zone is steady if it is well and has no pods beyond its replicas, which its controller deletes one by one. */
export function isSteady(zone: ZoneWithPods): boolean {
  return isWell(zone) && zone.pods.length <= zone.replicas;
}

/** Says why the zone is not steady: which pods are not ready, otherwise how many it has beyond its replicas. */
export function describeUnsteady(zone: ZoneWithPods): string {
  const { name, pods, replicas } = zone;
  return isWell(zone) ? `${name} has ${pods.length} pods, ${pods.length - replicas} more than it is to have` : describeUnavailable(zone);
}

/** Says which pods of the zone are not ready: `zone-b: zone-b-1 terminating, zone-b-2 CrashLoopBackOff, 1 missing`. */
export function describeUnavailable(zone: ZoneWithPods): string {
  const { pods, missing } = unavailable(zone);
  const parts = pods.map((pod) => `${pod.name} ${pod.terminating ? "terminating" : (pod.broken ?? "not ready")}`);
  if (missing > 0) parts.push(`${missing} missing`);
  if (parts.length === 0) parts.push(`status counts ${zone.status.ready} of ${Math.max(zone.replicas, zone.status.replicas)} ready`);
  return `${zone.name}: ${parts.join(", ")}`;
}
