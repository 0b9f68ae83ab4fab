/**
 * Orphaned zones: pods of a group whose StatefulSet is not among its zones. They count as a zone by the name of the
 * StatefulSet that made them, until another one adopts them or they are gone (§1.15).
 *
 *   StatefulSet deleted with --cascade=orphan    its pods have no controller: the label that the StatefulSet controller gives each pod tells its name
 *   deleted, and its pods are about to follow    their controller is a UID that no longer exists
 *   it lost its label, or has another one        their controller exists, and is no zone of the group: "outside"
 *
 * Nobody recreates a pod of a StatefulSet that is gone. So nobody of us deletes one, and while one is not ready, or is
 * missing, no other zone loses a pod that serves.
 */
import { hold, type Hold } from "./decision.ts";
import { listSome } from "./list-some.ts";
import { byOrdinal, groupBy, ordinalOf } from "./order.ts";
import type { Pod } from "./pod.ts";
import { describeUnavailable, isHealthy, unavailable } from "./readiness.ts";
import { readZone, type Zone, type ZoneWithPods } from "./zone.ts";

/** Pods without a zone, by the name of the StatefulSet that made them. Those of a name that a zone has belong to it. */
export function orphansByOwner<P extends Pod>(pods: readonly P[], zones: readonly Zone[]): Map<string, readonly P[]> {
  const [names, uids] = [new Set(zones.map(({ name }) => name)), new Set(zones.map(({ uid }) => uid))];
  const orphans = pods.filter(
    ({ madeBy, owner }) => madeBy !== undefined && !uids.has(owner ?? "") && !names.has(madeBy),
  );
  return new Map(groupBy(orphans, ({ madeBy = "" }) => madeBy));
}

/** The zone that these pods are of: their StatefulSet, if it exists under its UID, otherwise what is left of it. */
export function orphanedZone<P extends Pod>(
  name: string,
  pods: readonly P[],
  { owner, zones }: { readonly owner: Zone | undefined; readonly zones: readonly Zone[] },
): Zone & { readonly pods: readonly P[] } {
  const sorted = pods.toSorted(byOrdinal);
  const exists = owner && sorted.some((pod) => pod.owner === owner.uid);
  return exists
    ? { ...owner, pods: sorted, orphaned: "outside" }
    : { ...remains(name, sorted, zones), pods: sorted, orphaned: "gone" };
}

/**
 * What is left of a StatefulSet, as it would show itself. Its size is not known any more: it begins where the other
 * zones begin, has all pods up to the last that is left, and no fewer than the smallest other zone. So a pod counts as
 * missing that was on its way when the StatefulSet was deleted.
 */
function remains(name: string, pods: readonly Pod[], zones: readonly Zone[]): Zone {
  const start = Math.min(...zones.map(({ firstOrdinal }) => firstOrdinal), ...pods.map(ordinalOf));
  const sizes = zones.flatMap(({ replicas }) => (replicas > 0 ? [replicas] : []));
  const smallest = sizes.length > 0 ? Math.min(...sizes) : 0;
  const replicas = Math.max(smallest, ...pods.map((pod) => ordinalOf(pod) + 1 - start));
  const uid = pods.find(({ owner }) => owner !== undefined)?.owner ?? `gone/${name}`;
  const readyReplicas = pods.filter(({ ready }) => ready).length;
  return readZone({
    metadata: { namespace: pods[0]?.namespace ?? "", name, uid },
    spec: { replicas, ordinals: { start }, serviceName: "", selector: {}, template: {} },
    status: { replicas, readyReplicas },
  });
}

/** The hold of a zone that wants to lose pods while an orphaned zone is not whole. */
export function waitForOrphans(
  zone: Zone,
  orphans: readonly ZoneWithPods[] | undefined,
  wants: string,
): Hold | undefined {
  const unwell = (orphans ?? []).filter((one) => !isHealthy(one));
  if (unwell.length === 0) return undefined;
  const message = `${zone.name} ${wants}: ${listSome(unwell.map(describeOrphans), "; ")}`;
  const pods = unwell.flatMap((one) => (unavailable(one).pods.length > 0 ? unavailable(one).pods : one.pods));
  return {
    ...hold("ZoneOrphaned", message, [zone, ...pods]),
    dedupKey: `${zone.name} after ${listSome(unwell.map(({ name }) => name))}`,
  };
}

/** How the message of a zone ends whose StatefulSet exists. */
export const OUTSIDE = "is not in the group that its pods name";

/** Names what is not ready, and what ends that. */
export function describeOrphans(zone: ZoneWithPods): string {
  const what = describeUnavailable(zone);
  return zone.orphaned === "outside"
    ? `${what}; StatefulSet ${zone.name} ${OUTSIDE}`
    : `${what}; StatefulSet ${zone.name} is gone: create it again, or delete its pods`;
}
