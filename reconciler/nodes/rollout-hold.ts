/**
 * A rollout in progress holds the nodes with pods of other zones of its group: draining them would disrupt a second
 * zone.
 */
import { groupBy } from "../model/order.ts";
import { describeOrphans } from "../model/orphans.ts";
import { isHealthy } from "../model/readiness.ts";
import { groupKey, isSettledByStatus, type Zone, type ZoneWithPods } from "../model/zone.ts";
import type { NodePod } from "./node-pod.ts";

/** The zones of a group that have pods here. */
export const zonesHere = (pods: readonly NodePod[], group: readonly Zone[]): readonly Zone[] =>
  group.filter(({ uid }) => pods.some(({ owner }) => owner === uid));

/**
 * Names the first group whose rollout concerns another zone than the one that has pods here, or of which another zone
 * has lost its StatefulSet and lacks pods; undefined if there is none. `orphans` are the orphaned zones by group.
 */
export function whyHeldByRollout(
  pods: readonly NodePod[],
  zones: readonly Zone[],
  orphans: ReadonlyMap<string, readonly ZoneWithPods[]>,
): string | undefined {
  for (const [key, group] of groupBy(zones, groupKey)) {
    const here = zonesHere(pods, group);
    const [own] = here;
    if (!own) continue;
    const rolling = group.find((zone) => !isSettledByStatus(zone) && here.some(({ uid }) => uid !== zone.uid));
    if (rolling) return `group ${key} is rolling out zone ${rolling.name}, and zone ${own.name} has pods here`;
    const unwell = orphans.get(key)?.find((zone) => !isHealthy(zone));
    if (unwell) return `zone ${own.name} has pods here, and group ${key} waits for ${describeOrphans(unwell)}`;
  }
  return undefined;
}
