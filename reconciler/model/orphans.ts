/**
 * Orphaned zones: pods of a group whose StatefulSet is not among its zones. They count as a zone by the name of the
 * StatefulSet that made them, until another one adopts them or they are gone (§1.15).
 *
 *   StatefulSet deleted with --cascade=orphan    its pods have no controller: the label that the StatefulSet controller gives each pod tells its name
 *   deleted, and its pods are about to follow    their controller is a UID that no longer exists
 *   it lost its label, or has another one        their controller exists, and is no zone of the group: "outside"
 *   created again, with other ordinals           a zone has their name, but does not want pods of their ordinals: "replaced"
 *   the group was renamed while it rolls out     pods of a zone still name the former group: its zones count, "named"
 *
 * Nobody recreates a pod of a StatefulSet that is gone. So nobody of us deletes one, and while one is not ready, or is
 * missing, no other zone loses a pod that serves.
 */
import { hold, type Hold } from "./decision.ts";
import { listSome } from "../../infra/cut.ts";
import { byOrdinal, type OrdinalRange, ordinalOf } from "./order.ts";
import type { Pod } from "./pod.ts";
import { describeUnavailable, isHealthy, isSurplus, unavailable } from "./readiness.ts";
import { readZone, type Zone, type ZoneWithPods } from "./zone.ts";
import { isReady } from "./health.ts";

/**
 * Pods without a zone, by the name of the StatefulSet that made them. A zone of that name which is to have a pod of their
 * ordinal counts it as missing until it adopts them.
 */
export function orphansByOwner(pods: readonly Pod[], zones: readonly Zone[]): Map<string, readonly Pod[]> {
  const named = new Map(zones.map((zone) => [zone.name, zone]));
  const uids = new Set(zones.map(({ uid }) => uid));
  const isAwaited = (pod: Pod): boolean => {
    const zone = named.get(pod.madeBy ?? "");
    return zone !== undefined && !isSurplus(pod, zone);
  };
  const orphans = pods.filter((pod) => pod.madeBy !== undefined && !uids.has(pod.owner ?? "") && !isAwaited(pod));
  return Map.groupBy(orphans, ({ madeBy = "" }) => madeBy);
}

/** The zone that these pods are of: their StatefulSet, if it exists under its UID, otherwise what is left of it. */
export function orphanedZone(
  name: string,
  pods: readonly Pod[],
  {
    owner,
    zones,
    left,
  }: {
    readonly owner: Zone | undefined;
    readonly zones: readonly Zone[];
    /** The ordinals of all orphaned pods beside these. */
    readonly left?: OrdinalRange | undefined;
  },
): ZoneWithPods {
  const sorted = pods.toSorted(byOrdinal);
  const exists = owner && sorted.some((pod) => pod.owner === owner.uid);
  return exists
    ? { ...owner, pods: sorted, orphaned: "outside" }
    : {
        ...remains(name, sorted, { zones, left }),
        pods: sorted,
        orphaned: zones.some((zone) => zone.name === name) ? "replaced" : "gone",
      };
}

/**
 * What is left of a StatefulSet, as it would show itself. Its size is not known any more: it begins where the other
 * zones begin, has all pods up to the last that is left, and no fewer than the smallest other zone. So a pod counts as
 * missing that was on its way when the StatefulSet was deleted. If no other zone is left, it has the ordinals that the
 * others have left behind: all StatefulSets of a group may be created again at once. A zone that has its name counts its
 * own ordinals: what is left lies before them or after them. If it lies on both sides, they count here as well.
 */
function remains(
  name: string,
  pods: readonly Pod[],
  { zones, left }: { readonly zones: readonly Zone[]; readonly left: OrdinalRange | undefined },
): Zone {
  const alive = zones.filter((zone) => zone.name !== name && zone.replicas > 0);
  const ordinals = pods.map(ordinalOf);
  const known = alive.length > 0 || !left ? ordinals : [...ordinals, left.start, left.end - 1];
  const first = Math.min(...alive.map(({ firstOrdinal }) => firstOrdinal), ...known);
  const smallest = alive.length > 0 ? Math.min(...alive.map(({ replicas }) => replicas)) : 0;
  const last = Math.max(first + smallest - 1, ...known);
  const { start, end } = withoutOrdinalsOf(
    zones.find((zone) => zone.name === name),
    { start: first, end: last + 1, ordinals },
  );
  const replicas = end - start;
  const uid = pods.find(({ owner }) => owner !== undefined)?.owner ?? `gone/${name}`;
  const readyReplicas = pods.filter(isReady).length;
  return readZone({
    metadata: { namespace: pods[0]?.namespace ?? "", name, uid },
    spec: { replicas, ordinals: { start }, serviceName: "", selector: {}, template: {} },
    status: { replicas, readyReplicas },
  });
}

function withoutOrdinalsOf(
  zone: Zone | undefined,
  { start, end, ordinals }: OrdinalRange & { readonly ordinals: readonly number[] },
): OrdinalRange {
  if (!zone) return { start, end };
  const { firstOrdinal, replicas } = zone;
  const behind = firstOrdinal + replicas;
  return {
    start: ordinals.every((ordinal) => ordinal >= behind) ? Math.max(start, behind) : start,
    end: ordinals.every((ordinal) => ordinal < firstOrdinal) ? Math.min(end, firstOrdinal) : end,
  };
}

/** From the first to the last ordinal of these pods; undefined without any. */
export function ordinalsOf(pods: readonly Pod[]): OrdinalRange | undefined {
  return pods.map(ordinalOf).reduce<OrdinalRange | undefined>(
    (range, ordinal) => ({
      start: Math.min(range?.start ?? ordinal, ordinal),
      end: Math.max(range?.end ?? 0, ordinal + 1),
    }),
    undefined,
  );
}

/** The hold while orphaned zones are not whole: nobody recreates their pods. */
export function holdForOrphans(orphans: readonly ZoneWithPods[] | undefined): Hold | undefined {
  const unwell = (orphans ?? []).filter((one) => !isHealthy(one));
  if (unwell.length === 0) return undefined;
  const pods = unwell.flatMap((one) => {
    const { pods: named } = unavailable(one);
    return named.length > 0 ? named : one.pods;
  });
  return {
    ...hold("ZoneOrphaned", listSome(unwell.map(describeOrphans), "; "), pods),
    dedupKey: listSome(unwell.map(({ name }) => name)),
  };
}

/** The hold of a group without any StatefulSet, of which these pods are left; undefined without any. */
export function holdForLost(orphans: readonly ZoneWithPods[]): Hold | undefined {
  if (orphans.length === 0) return undefined;
  const left = listSome(orphans.map(({ name, pods }) => `${pods.length} pods of ${name}`));
  return hold(
    "ZoneOrphaned",
    `no StatefulSet has its label, and pods of it are left: ${left}; create their StatefulSets again, or delete them`,
    orphans,
  );
}

/** The same for a zone that wants to lose pods. */
export function waitForOrphans(
  zone: Zone,
  orphans: readonly ZoneWithPods[] | undefined,
  wants: string,
): Hold | undefined {
  const held = holdForOrphans(orphans);
  return (
    held && {
      ...held,
      message: `${held.message}; ${zone.name} ${wants}`,
      objects: [zone, ...held.objects],
      dedupKey: `${zone.name} after ${held.dedupKey}`,
    }
  );
}

/** How the message of a zone ends whose StatefulSet exists. */
export const OUTSIDE = "is not in the group that its pods name";
/** The same, where it was created again without them. */
export const REPLACED = "was created again without these ordinals: delete such pods, or create it again with them";

/** The same of a zone of another group, which pods of this one name. */
export const NAMED = "which pods of this group name by their label";

/** How a StatefulSet has left its pods behind, or why it counts here. */
export function describeOrphaning({ name, group, orphaned }: Zone): string {
  if (orphaned === "named") return `StatefulSet ${name} is of group ${group}, ${NAMED}`;
  return `StatefulSet ${name} ${orphaned === "outside" ? OUTSIDE : orphaned === "replaced" ? REPLACED : "is gone"}`;
}

/** Names what is not ready, and what ends that. */
export function describeOrphans(zone: ZoneWithPods): string {
  const cure = zone.orphaned === "gone" ? ": create it again, or delete its pods" : "";
  return `${describeUnavailable(zone)}; ${describeOrphaning(zone)}${cure}`;
}
