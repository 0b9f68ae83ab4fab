/**
 * Counts the unavailable pods of a zone (§1.4). Status and pods both lag, so the worse of the two counts, and so does
 * the larger of spec and status replicas: while a pod is gone and its successor cannot be created (a quota, a webhook),
 * status counts one replica less, all ready. At the end: which of them a zone that is to shrink does not wait for.
 */
import { describeHealth, isReady, isTerminating, neverServed, RECOVERY_MS } from "./health.ts";
import { listSome } from "../../infra/cut.ts";
import { ordinalOf } from "./order.ts";
import type { Pod } from "./pod.ts";
import { leaderAmong, type Zone, type ZoneWithPods } from "./zone.ts";
import type { Mirror } from "./annotations.ts";

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

type Ordinals = Pick<Zone, "firstOrdinal" | "replicas">;

/** The pods that should exist and do not, by the spec or by the status. */
export function countMissing(zone: Zone, pods: readonly { readonly name: string }[]): number {
  return Math.max(countGaps(zone, pods), zone.status.replicas - pods.length);
}

/** Names of pods that the zone should have and has not, the first `most` of them. */
export function missingPods(zone: Zone, pods: readonly { readonly name: string }[], most: number): string[] {
  const expected = Math.max(zone.replicas, zone.status.replicas);
  const count = Math.min(most, countMissing(zone, pods));
  if (count === 0) return [];
  const there = new Set(pods.map(({ name }) => name));
  const missing: string[] = [];
  for (let ordinal = zone.firstOrdinal; ordinal < zone.firstOrdinal + expected && missing.length < count; ordinal++) {
    const name = `${zone.name}-${ordinal}`;
    if (!there.has(name)) missing.push(name);
  }
  return missing;
}

/**
 * The ordinals without a pod. A surplus pod stands in for none of them: with another `ordinals.start`, or during a
 * downscale, it is there beside a gap.
 */
function countGaps(ordinals: Ordinals, pods: readonly { readonly name: string }[]): number {
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

// Pods that a zone which is to shrink does not wait for: they are to go as well, and do not come up. After a scale-up that
// failed in several zones and was reverted, each zone would otherwise wait for the very pods that the others are about to
// lose. Such pods are beyond the size that their zone is to have, and
//
//   cannot come up by themselves                               for 5 minutes
//   are not ready for another reason, and may be ours          for an hour
//   are missing, and not made (a quota, an order of start)     at once, unless a pod beyond that size is ready

export interface Shrink {
  readonly zone: Pick<Zone, "uid" | "name" | "scaling">;
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface ShrinkInGroup extends Shrink {
  readonly zones: readonly Zone[];
}

/** Milliseconds: longer than pods take to read what they have stored before they are ready. */
export const GIVEN_UP_MS = 3_600_000;

/** True for a pod of another zone that is there, and that the shrinking zone does not wait for. */
export function isGivenUp(pod: Pod, other: Zone, shrink: ShrinkInGroup): boolean {
  const { since, fault } = pod.health;
  if (isReady(pod) || since === undefined || !isSurplus(pod, intendedOrdinals(other, shrink))) return false;
  return shrink.now - since >= (fault === undefined ? GIVEN_UP_MS : RECOVERY_MS);
}

/**
 * The number of missing pods of another zone that the shrinking zone waits for. The controller makes no more pods once
 * the status counts none beside those that are there: a pod that has just gone still counts in the status.
 */
export function countAwaited(other: Zone, pods: readonly Pod[], shrink: ShrinkInGroup): number {
  const intended = intendedOrdinals(other, shrink);
  const makesMore = !other.observed || other.status.replicas > pods.length;
  if (makesMore || pods.some((pod) => isReady(pod) && isSurplus(pod, intended))) return countMissing(other, pods);
  return countGaps({ ...intended, replicas: Math.min(other.replicas, intended.replicas) }, pods);
}

const intendedOrdinals = (other: Zone, shrink: ShrinkInGroup): Ordinals => ({
  firstOrdinal: other.firstOrdinal,
  replicas: intendedSize(other, shrink, shrink.zones.length),
});

/**
 * The size that another zone is to have, as it follows its leaders for so many hops at most: the new size of the
 * shrinking zone, if it follows that or mirrors what that mirrors.
 */
function intendedSize(other: Zone, shrink: ShrinkInGroup, hops: number): number {
  const { zones, zone, size } = shrink;
  const { forcedReplicas, mirror } = other.scaling;
  if (other.uid === zone.uid) return size;
  if (forcedReplicas !== undefined) return forcedReplicas;
  const leader = hops > 0 ? leaderAmong(zones, other) : undefined;
  if (leader) return intendedSize(leader, shrink, hops - 1);
  return mirror && isSameReference(mirror, zone.scaling.mirror) ? size : other.replicas;
}

function isSameReference(one: Mirror, other: Mirror | undefined): boolean {
  return one.kind === other?.kind && one.name === other.name && one.group === other.group;
}
