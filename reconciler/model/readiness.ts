/** Which pods of a zone are unavailable [1.4], by its status and by its pods: both lag, so the worse of the two counts. */
import type { Pod } from "./pod.ts";
import type { ZoneWithPods } from "./zone.ts";

export interface Unavailable {
  /** Pods that are terminating or not ready. */
  readonly pods: readonly Pod[];
  /** Pods that do not exist, but should according to status. */
  readonly missing: number;
  /** How many are unavailable in all; 0 means that the zone is well. */
  readonly count: number;
}

export function unavailable(zone: ZoneWithPods): Unavailable {
  const pods = zone.pods.filter((pod) => !pod.ready);
  const missing = Math.max(0, zone.status.replicas - zone.pods.length);
  return { pods, missing, count: Math.max(zone.status.replicas - zone.status.ready, pods.length + missing) };
}

/** A zone has not-ready pods if status or pods say so. */
export function isWell(zone: ZoneWithPods): boolean {
  return zone.status.replicas === zone.status.ready && unavailable(zone).count === 0;
}

/** Says which pods of the zone are not ready: `zone-b: zone-b-1 terminating, zone-b-2 CrashLoopBackOff, 1 missing`. */
export function describeUnavailable(zone: ZoneWithPods): string {
  const { pods, missing } = unavailable(zone);
  const parts = pods.map((pod) => `${pod.name} ${pod.terminating ? "terminating" : (pod.broken ?? "not ready")}`);
  if (missing > 0) parts.push(`${missing} missing`);
  if (parts.length === 0) parts.push(`status counts ${zone.status.ready} of ${zone.status.replicas} ready`);
  return `${zone.name}: ${parts.join(", ")}`;
}
