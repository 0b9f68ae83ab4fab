/**
 * Pods that block no other zone, as they are to go as well and do not become ready. Otherwise, after a scale-up that
 * failed in several zones and was reverted, each zone would wait for the very pods that the others are about to lose.
 *
 *   beyond the size that its zone is to have, and cannot come up by itself     for 5 minutes: given up
 *   beyond it, and not ready for another reason: it may be one of ours         for an hour: given up
 *   beyond it, and its controller does not make it (a quota, an order)         given up, unless a pod there is ready
 */
import { isReady, RECOVERY_MS } from "./health.ts";
import { leaderAmong } from "./leaders.ts";
import type { Pod } from "./pod.ts";
import { countGaps, countMissing, isSurplus, type Ordinals } from "./readiness.ts";
import type { Zone } from "./zone.ts";

/** A zone that is to have `size` replicas. */
export interface Shrink {
  readonly zone: Pick<Zone, "uid" | "name" | "scaling">;
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A zone that is to shrink, in its group. */
export interface ShrinkInGroup extends Shrink {
  readonly zones: readonly Zone[];
}

/** Milliseconds: longer than pods take to read what they have stored before they are ready. */
export const GIVEN_UP_MS = 3_600_000;

/**
 * True for a pod of another zone that is beyond the size which its zone is to have, and has not been ready for long.
 */
export function isGivenUp(pod: Pod, other: Zone, shrink: ShrinkInGroup): boolean {
  const { since, fault } = pod.health;
  if (isReady(pod) || since === undefined || !isSurplus(pod, intended(other, shrink))) return false;
  return shrink.now - since >= (fault === undefined ? GIVEN_UP_MS : RECOVERY_MS);
}

/**
 * The missing pods of another zone that others wait for: without those beyond the size which the zone is to have, if its
 * controller does not create them. That is so once the status counts no more pods than there are: a pod that has just
 * gone still counts in the status. A pod beyond that size which is ready shows that its controller creates them.
 */
export function countAwaited(other: Zone, pods: readonly Pod[], shrink: ShrinkInGroup): number {
  const size = intended(other, shrink);
  const createsNone = other.observed && other.status.replicas <= pods.length;
  const hasReadySurplus = pods.some((pod) => isReady(pod) && isSurplus(pod, size));
  if (!createsNone || hasReadySurplus) return countMissing(other, pods);
  return countGaps({ ...size, replicas: Math.min(other.replicas, size.replicas) }, pods);
}

/** The pods that another zone is to have once the shrinking one has its size. */
function intended(other: Zone, { zones, zone, size }: ShrinkInGroup): Ordinals {
  return { firstOrdinal: other.firstOrdinal, replicas: intendedSize(other, zones, { zone, size }) };
}

/**
 * The size of its leader, or of that one's leader, or of a reference that the shrinking zone mirrors, too; otherwise
 * its own replicas.
 */
function intendedSize(other: Zone, zones: readonly Zone[], { zone, size }: Pick<Shrink, "zone" | "size">): number {
  let last = other;
  for (let hops = 0; hops < zones.length; hops++) {
    if (last.uid === zone.uid) return size;
    const { forcedReplicas } = last.scaling;
    if (forcedReplicas !== undefined) return forcedReplicas;
    const next = leaderAmong(zones, last);
    if (!next) break;
    last = next;
  }
  const { mirror } = last.scaling;
  return mirror && isSameReference(mirror, zone.scaling.mirror) ? size : last.replicas;
}

type Reference = NonNullable<Zone["scaling"]["mirror"]>;

function isSameReference(one: Reference, other: Reference | undefined): boolean {
  return one.kind === other?.kind && one.name === other.name && one.group === other.group;
}
