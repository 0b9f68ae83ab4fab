/**
 * A rollout in progress holds the nodes with pods of other zones of its group: draining them would disrupt a second
 * zone.
 */
import { groupBy } from "../model/order.ts";
import { groupKey, isSettledByStatus, type Zone } from "../model/zone.ts";
import type { NodePod } from "./node-pod.ts";

/**
 * Names the first group whose rollout concerns another zone than the one that has pods here; undefined if there is
 * none.
 */
export function whyHeldByRollout(pods: readonly NodePod[], zones: readonly Zone[]): string | undefined {
  const owners = new Set(pods.map(({ owner }) => owner));
  for (const [key, group] of groupBy(zones, groupKey)) {
    const here = group.filter(({ uid }) => owners.has(uid));
    const [own] = here;
    const rolling = group.find((zone) => !isSettledByStatus(zone) && here.some(({ uid }) => uid !== zone.uid));
    if (own && rolling) return `group ${key} is rolling out zone ${rolling.name}, and zone ${own.name} has pods here`;
  }
  return undefined;
}
