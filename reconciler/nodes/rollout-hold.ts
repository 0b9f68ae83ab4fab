/**
 * A rollout in progress holds the nodes with pods of other zones of its group: draining them would disrupt a second
 * zone.
 */
import { LABELS } from "../model/annotations.ts";
import { groupBy } from "../model/order.ts";
import { describeOrphans } from "../model/orphans.ts";
import { isHealthy } from "../model/readiness.ts";
import { groupKey, isSettledByStatus, type Zone, type ZoneWithPods } from "../model/zone.ts";
import type { NodePod } from "./node-pod.ts";

/** The zones of a group that have pods here; pods that a StatefulSet has left behind are of the zone of its name. */
const zonesHere = (pods: readonly NodePod[], zones: readonly Zone[]): readonly Zone[] =>
  zones.filter(({ uid, name, namespace }) =>
    pods.some((pod) => pod.owner === uid || (pod.madeBy === name && pod.namespace === namespace)),
  );

/** True if the group, or a StatefulSet that it has lost, may have pods here. */
export function mayHavePodsHere(pods: readonly NodePod[], zones: readonly Zone[]): boolean {
  const [first] = zones;
  const isNamed = ({ namespace, labels }: NodePod): boolean =>
    namespace === first?.namespace && labels[LABELS.rolloutGroup] === first.group;
  return pods.some((pod) => pod.madeBy !== undefined && isNamed(pod)) || zonesHere(pods, zones).length > 0;
}

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
    const left = orphans.get(key) ?? [];
    const here = zonesHere(pods, [...group, ...left]);
    const besides = ({ name }: Zone): Zone | undefined => here.find((zone) => zone.name !== name);
    for (const zone of group) {
      const own = besides(zone);
      if (own && !isSettledByStatus(zone))
        return `group ${key} is rolling out zone ${zone.name}, and zone ${own.name} has pods here`;
    }
    for (const zone of left) {
      const own = besides(zone);
      if (own && !isHealthy(zone))
        return `zone ${own.name} has pods here, and group ${key} waits for ${describeOrphans(zone)}`;
    }
  }
  return undefined;
}
