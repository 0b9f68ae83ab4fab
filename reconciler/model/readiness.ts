/**
 * Counts the unavailable pods of a zone (§1.4). Status and pods both lag, so the worse of the two counts, and so does
 * the larger of spec and status replicas: while a pod is gone and its successor cannot be created (a quota, a webhook),
 * status counts one replica less, all ready.
 */
import { describeHealth, isReady, isTerminating, neverServed } from "./health.ts";
import { listSome } from "../../infra/cut.ts";
import { ordinalOf } from "./order.ts";
import type { Pod } from "./pod.ts";
import type { Zone, ZoneWithPods } from "./zone.ts";

interface Unavailable {
  /** Pods that are terminating or not ready. */
  readonly pods: readonly Pod[];
  /** Pods that should exist and do not. */
  readonly missing: number;
  /** All unavailable pods together; 0 means that the zone is healthy. */
  readonly count: number;
}

/** Pods beyond the zone's ordinals that never served are left out: they serve no client. */
export function unavailable(whole: ZoneWithPods): Unavailable {
  const zone = withoutIdleSurplus(whole);
  const expected = Math.max(zone.replicas, zone.status.replicas);
  const pods = zone.pods.filter((pod) => !isReady(pod));
  const missing = countMissing(zone, zone.pods);
  return { pods, missing, count: Math.max(expected - zone.status.ready, pods.length + missing) };
}

/**
 * The zone as if pods that it is not to have, and that never served, were gone: such pods are left after a scale-up
 * that failed and was reverted.
 */
export function withoutIdleSurplus(zone: ZoneWithPods): ZoneWithPods {
  const idle = zone.pods.filter((pod) => isIdleSurplus(pod, zone));
  const { status } = zone;
  const updated = idle.filter((pod) => !isTerminating(pod) && pod.revision === status.updateRevision).length;
  const pods = zone.pods.filter((pod) => !idle.includes(pod));
  return {
    ...zone,
    pods,
    status: { ...status, replicas: status.replicas - idle.length, updated: status.updated - updated },
  };
}

/** True for a pod beyond the zone's ordinals that never served. */
export function isIdleSurplus(pod: Pod, zone: Ordinals): boolean {
  return neverServed(pod) && isSurplus(pod, zone);
}

/**
 * Pods of another than the update revision that are not terminating. Each pod's revision is compared: after a revert,
 * `currentRevision` does not show it (§1.5.3). The controller is about to remove a surplus pod that never served.
 */
export function outdated(zone: ZoneWithPods): Pod[] {
  return zone.pods.filter(
    (pod) => pod.revision !== zone.status.updateRevision && !isTerminating(pod) && !isIdleSurplus(pod, zone),
  );
}

/** The ordinals of a zone's pods. */
export type Ordinals = Pick<Zone, "firstOrdinal" | "replicas">;

/** The pods that should exist and do not, by the spec or by the status. */
export function countMissing(zone: Zone, pods: readonly { readonly name: string }[]): number {
  return Math.max(countGaps(zone, pods), zone.status.replicas - pods.length);
}

/**
 * The ordinals without a pod. A surplus pod stands in for none of them: with another `ordinals.start`, or during a
 * downscale, it is there beside a gap.
 */
export function countGaps(ordinals: Ordinals, pods: readonly { readonly name: string }[]): number {
  return Math.max(0, ordinals.replicas - pods.filter((pod) => !isSurplus(pod, ordinals)).length);
}

/** True for a pod beyond the zone's ordinals, which its controller will delete. */
export function isSurplus(pod: { readonly name: string }, { firstOrdinal, replicas }: Ordinals): boolean {
  const place = ordinalOf(pod) - firstOrdinal;
  return place < 0 || place >= replicas;
}

/** True if neither the status nor the pods show an unavailable pod. */
export function isHealthy(zone: ZoneWithPods): boolean {
  return unavailable(zone).count === 0;
}

/**
 * True if the zone is healthy and has no surplus pods that serve or have served, which its controller would delete one
 * by one.
 */
export function isSteady(zone: ZoneWithPods): boolean {
  return isHealthy(zone) && withoutIdleSurplus(zone).pods.length <= zone.replicas;
}

/** Names the pods that are not ready, otherwise the number of surplus pods. */
export function describeUnsteady(zone: ZoneWithPods): string {
  const { name, pods, replicas } = withoutIdleSurplus(zone);
  return isHealthy(zone)
    ? `${name} has ${pods.length} pods, ${pods.length - replicas} more than it should have`
    : describeUnavailable(zone);
}

/** Names the unavailable pods of the zone: `zone-b-1: terminating, zone-b-2: CrashLoopBackOff, 1 pod of zone-b missing`. */
export function describeUnavailable(zone: ZoneWithPods): string {
  const { pods, missing } = unavailable(zone);
  const named = pods.map((pod) => `${pod.name}: ${describeHealth(pod)}`);
  const parts = pods.length > 0 ? [listSome(named)] : [];
  if (missing > 0)
    parts.push(`${missing} ${missing === 1 ? "pod" : "pods"} of ${zone.name} missing${whyMissing(zone)}`);
  if (parts.length > 0) return parts.join(", ");
  return `${zone.name}: status counts ${zone.status.ready} of ${Math.max(zone.replicas, zone.status.replicas)} ready`;
}

/** How a message tells of pods that keep a StatefulSet from making its own. */
export const STRANGERS = "left behind by an earlier StatefulSet of its name, and its selector does not match them";

function whyMissing({ strangers = [] }: ZoneWithPods): string {
  const names = listSome(strangers.map(({ name }) => name));
  return strangers.length === 0 ? "" : `: ${names} ${strangers.length === 1 ? "is" : "are"} ${STRANGERS}`;
}
