/**
 * The number of pods of a zone that its rollout may have unavailable at the moment (§1.13). If batches accelerate, the
 * limit is 1 at first, and doubles once as many pods as the limit have come up healthy in a row, up to
 * `maxUnavailable`:
 *
 *   pods that came up healthy   0   1 2   3 4 5 6   7 …
 *   limit                       1   2     4         8
 *
 * A pod that restarted, cannot come up or is no longer ready ends the row; pods that became ready after it begin
 * another one. Nothing is remembered: the pods show everything.
 */
import { isReady, isTerminating } from "../model/health.ts";
import type { Pod } from "../model/pod.ts";
import type { ZoneWithPods } from "../model/zone.ts";

export function batchLimitOf(zone: ZoneWithPods): number {
  return zone.accelerates ? limitAfter(countHealthy(zone), zone.maxUnavailable) : zone.maxUnavailable;
}

/** The limit after as many healthy pods in a row. */
const limitAfter = (healthy: number, most: number): number => Math.min(most, 2 ** Math.floor(Math.log2(healthy + 1)));

/** Pods of the update revision that came up without trouble since the last one that did not. */
function countHealthy({ pods, status }: ZoneWithPods): number {
  const updated = pods.filter((pod) => pod.revision === status.updateRevision && !isTerminating(pod));
  // One that is not ready ends the row for now: nothing became ready after it.
  const since = Math.max(-Infinity, ...updated.filter(isTroubled).map((pod) => readyAt(pod) ?? Infinity));
  return updated.filter((pod) => !isTroubled(pod) && (readyAt(pod) ?? -Infinity) > since).length;
}

const readyAt = (pod: Pod): number | undefined => (isReady(pod) ? pod.health.since : undefined);

const isTroubled = ({ restarts, health: { state, fault, served } }: Pod): boolean =>
  restarts > 0 || fault !== undefined || (served === true && state !== "ready");

/** The number of batches in which `count` further pods are replaced, if each comes up healthy. */
export function countBatches(zone: ZoneWithPods, count: number): number {
  const { accelerates, maxUnavailable: most } = zone;
  if (!accelerates) return Math.ceil(count / most);
  let batches = 0;
  for (let healthy = countHealthy(zone), left = count; left > 0; batches++) {
    const size = limitAfter(healthy, most);
    if (size === most) return batches + Math.ceil(left / most);
    [healthy, left] = [healthy + size, left - size];
  }
  return batches;
}
