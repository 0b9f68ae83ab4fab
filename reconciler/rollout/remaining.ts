/** The remaining steps of a rollout, in order. */
import { moveToFront } from "../model/order.ts";
import type { RemainingZone } from "../model/outcome.ts";
import { isReady, neverServed } from "../model/health.ts";
import { outdated } from "../model/readiness.ts";
import { isZoneRecorded, type Zone, type ZoneWithPods } from "../model/zone.ts";
import { countBatches } from "./batch-limit.ts";
import { inOrder } from "./decide-rollout.ts";

/** The most pods of a zone that are named. */
const MAX_NAMED = 10;

/** The zones with something left to do, and the pods as they are. */
export function listRemaining(zones: readonly ZoneWithPods[]): RemainingZone[] {
  return inOrder(zones).flatMap((zone) => {
    const unreadyFirst = moveToFront(outdated(zone), (pod) => !isReady(pod));
    const candidates = moveToFront(unreadyFirst, (pod) => pod.health.state === "lost" || neverServed(pod));
    if (candidates.length === 0 && isZoneRecorded(zone)) return [];
    const names = candidates.slice(0, MAX_NAMED).map((pod) => pod.name);
    return [
      {
        zone: zone.name,
        count: candidates.length,
        pods: names,
        atOnce: zone.maxUnavailable,
        ...(zone.accelerates && { batches: countBatches(zone, candidates.length) }),
        msPerPod: medianReadyMs(zone),
      },
    ];
  });
}

/** The same by status alone, in the order of names. */
export function countRemaining(zones: readonly Zone[]): RemainingZone[] {
  return zones
    .map((zone) => ({ zone, count: Math.max(0, zone.replicas - zone.status.updated) }))
    .filter(({ zone, count }) => !zone.paused && (count > 0 || !isZoneRecorded(zone)))
    .map(({ zone, count }) => ({ zone: zone.name, count, pods: [], atOnce: zone.maxUnavailable, msPerPod: undefined }));
}

/**
 * A pod that turned ready later than this after its start had been ready before: it does not show how long a start
 * takes.
 */
const MAX_START_MS = 6 * 3_600_000;

/**
 * The median of the milliseconds that pods of the zone took to become ready: single slow or restarted ones do not
 * matter.
 */
export function medianReadyMs({ pods }: ZoneWithPods): number | undefined {
  const times = pods
    .flatMap(({ readyAfterMs: ms }) => (ms !== undefined && ms <= MAX_START_MS ? ms : []))
    .toSorted((a, b) => a - b);
  return times[Math.floor(times.length / 2)];
}
