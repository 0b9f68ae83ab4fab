/** Reads the cluster into snapshots: StatefulSets first, then pods (§13.3), each list once. */
import type { Call, Query } from "../../infra/kubernetes/cluster.ts";
import { readEach } from "../../infra/kubernetes/collect.ts";
import { pods, type Resource, type StatefulSet, statefulSets } from "../../infra/kubernetes/resources.ts";
import type { Source } from "../../infra/kubernetes/context.ts";
import { visitEach } from "../../infra/slots.ts";
import { LABELS } from "../model/annotations.ts";
import { matchesSelector, selectorText } from "../model/label-selector.ts";
import { byName } from "../model/order.ts";
import { ordinalsOf, orphanedZone, orphansByOwner } from "../model/orphans.ts";
import { type Pod, readPod } from "../model/pod.ts";
import { isSurplus } from "../model/readiness.ts";
import {
  groupKey,
  readZone,
  withPods,
  type GatheredGroup,
  type Zone,
  type ZoneList,
  type ZoneWithPods,
} from "../model/zone.ts";

/**
 * Lists the StatefulSets of every rollout group, with one call a namespace. If no namespace can be read, throws the
 * error of the first: that of the API server.
 */
export async function gatherZones(namespaces: readonly string[], source: Source, call?: Call): Promise<ZoneList> {
  const { results, failures } = await readEach(namespaces, async (namespace) => {
    const query = { ...(namespace && { namespace }), labelSelector: LABELS.rolloutGroup };
    return { namespace, ...(await readAll({ resource: statefulSets, query, read: readZone }, source, call)) };
  });
  const zones = results.flatMap(({ items }) => items);
  return {
    failures,
    groups: Map.groupBy(zones.toSorted(byName), groupKey),
    resourceVersions: new Map(results.map(({ namespace, resourceVersion }) => [namespace, resourceVersion])),
  };
}

/**
 * Reads the zones of one group again, in byte order of their names. Throws the error of the API server.
 */
export async function gatherGroupZones(
  { namespace, group }: Pick<Zone, "namespace" | "group">,
  source: Source,
  call?: Call,
): Promise<readonly Zone[]> {
  const query = { namespace, labelSelector: `${LABELS.rolloutGroup}=${group}` };
  return (await readAll({ resource: statefulSets, query, read: readZone }, source, call)).items.toSorted(byName);
}

/**
 * Completes the zones of one group, which are all of them, with their pods, and adds the pods that carry the label of the
 * group without being of a zone. If pods of its zones name other groups, the zones of those are added as orphaned ones
 * (§1.15.6). Throws the error of the API server.
 */
export async function gatherGroup(zones: readonly Zone[], source: Source, call?: Call): Promise<GatheredGroup> {
  const [{ namespace } = { namespace: "" }] = zones;
  const { named, complete, orphans: left } = await completeGroup(zones, { ...source, call });
  const known = new Set([...zones, ...left].map(({ uid }) => uid));
  const others = named.size > 0 ? await gatherNamed([...named], namespace, { ...source, call }) : [];
  const orphans = [...left, ...others.filter(({ uid }) => !known.has(uid))];
  return { zones: complete, ...(orphans.length > 0 && { orphans }) };
}

interface CompleteGroup {
  readonly complete: readonly ZoneWithPods[];
  readonly orphans: readonly ZoneWithPods[];
  /** The groups that pods of its zones name by their label, other than their own. */
  readonly named: ReadonlySet<string>;
}

async function completeGroup(zones: readonly Zone[], source: BoundSource): Promise<CompleteGroup> {
  const { complete, labelled, named } = await readPods(zones, source);
  const withStrangers = (zone: Zone): ZoneWithPods => {
    const strangers = labelled.filter((pod) => pod.owner === undefined && isInTheWay(pod, zone));
    return { ...complete(zone), ...(strangers.length > 0 && { strangers }) };
  };
  return { complete: zones.map(withStrangers), orphans: await findOrphans(labelled, zones, source), named };
}

/** True of a pod that was left behind, and that the StatefulSet which wants its name cannot adopt. */
const isInTheWay = (pod: Pod, zone: Zone): boolean =>
  pod.madeBy === zone.name && !isSurplus(pod, zone) && !matchesSelector(zone.selector, pod.labels);

/** Groups that pods of one group may name: one selector holds them. */
const MAX_NAMED = 32;

/** The zones of these groups, and what StatefulSets of them have left behind. */
async function gatherNamed(names: readonly string[], namespace: string, source: BoundSource): Promise<ZoneWithPods[]> {
  const labelSelector = `${LABELS.rolloutGroup} in (${names.toSorted().slice(0, MAX_NAMED).join()})`;
  const query = { namespace, labelSelector };
  const { items } = await readAll({ resource: statefulSets, query, read: readZone }, source, source.call);
  const groups = await Promise.all(
    [...Map.groupBy(items, groupKey).values()].map((zones) => completeGroup(zones, source)),
  );
  return groups.flatMap(({ complete, orphans }) => [
    ...complete.map((zone) => ({ ...zone, orphaned: "named" as const })),
    ...orphans,
  ]);
}

/** Completes some zones of a group with their pods. */
export async function gatherZonePods(zones: readonly Zone[], source: Source): Promise<readonly ZoneWithPods[]> {
  const { complete } = await readPods(zones, source);
  return zones.map(complete);
}

interface BoundSource extends Source {
  readonly call?: Call | undefined;
}

interface FoundPods {
  readonly complete: (zone: Zone) => ZoneWithPods;
  /** Those that carry the label of the group, and that none of its zones controls. */
  readonly labelled: readonly Pod[];
  readonly named: CompleteGroup["named"];
}

/** Lists of pods in flight for one group. */
const LISTS_AT_ONCE = 8;

async function readPods(zones: readonly Zone[], source: BoundSource): Promise<FoundPods> {
  const found = new Map<Zone, Pod[]>(zones.map((zone) => [zone, []]));
  const labelled: Pod[] = [];
  const named = new Set<string>();
  const uids = new Set(zones.map(({ uid }) => uid));
  const { namespace = "", group = "" } = zones[0] ?? {};
  await visitEach(planLists(zones), { atOnce: LISTS_AT_ONCE }, async ({ labelSelector, isOfGroup, ...list }) => {
    const query = { namespace, labelSelector };
    const { items } = await readAll({ resource: pods, query, read: readPod }, source, source.call);
    for (const pod of items) {
      const zone = list.zones.find((one) => isOf(pod, one));
      const { [LABELS.rolloutGroup]: names = "" } = pod.labels;
      if (zone) {
        found.get(zone)?.push(pod);
        named.add(names);
      } else if (isOfGroup && !uids.has(pod.owner ?? "") && names === group) labelled.push(pod);
    }
  });
  for (const own of ["", group]) named.delete(own);
  return { complete: (zone) => withPods(zone, found.get(zone) ?? []), labelled, named };
}

/** A pod whose labels are too long to be kept is its owner's: a StatefulSet releases the pods that it does not select. */
const isOf = ({ owner, labels, textProblem }: Pod, { uid, selector }: Zone): boolean =>
  owner === uid && (textProblem !== undefined || matchesSelector(selector, labels));

/** A list that finds the pods of these zones, and possibly others. */
interface PodList {
  readonly labelSelector: string;
  readonly zones: readonly Zone[];
  /** It finds each pod that carries the label of the group, whatever StatefulSet made it. */
  readonly isOfGroup?: true;
}

/**
 * The lists that find the pods of a group's zones, those of each zone in one. Zones that select by the label of the group
 * share one: an API server goes through all pods of the namespace for each list, however few it finds.
 */
export function planLists(zones: readonly Zone[]): PodList[] {
  const [group = ""] = zones.map((zone) => zone.group);
  const isBound = ({ selector }: Zone): boolean => selector.matchLabels?.[LABELS.rolloutGroup] === group;
  const isLabelled = (zone: Zone): boolean => isBound(zone) || zone.podLabels[LABELS.rolloutGroup] === group;
  const ownList = (zone: Zone): PodList => ({ labelSelector: selectorText(zone.selector), zones: [zone] });
  if (group === "" || !zones.some(isLabelled)) return zones.map(ownList);
  const labelSelector = `${LABELS.rolloutGroup}=${group}`;
  return [
    { labelSelector, zones: zones.filter(isBound), isOfGroup: true },
    ...zones.filter((zone) => !isBound(zone)).map(ownList),
  ];
}

/**
 * The pods that carry the label of a group without being of its zones, as zones; none if no zone gives its pods that
 * label.
 */
export async function gatherOrphans(zones: readonly Zone[], source: BoundSource): Promise<ZoneWithPods[]> {
  const { namespace = "" } = zones[0] ?? {};
  const list = planLists(zones).find(({ isOfGroup }) => isOfGroup);
  if (!list) return [];
  const query = { namespace, labelSelector: list.labelSelector };
  const { items } = await readAll({ resource: pods, query, read: readPod }, source, source.call);
  return await findOrphans(items, zones, source);
}

/**
 * The zones that pods make up which are of none of these. Their StatefulSets are read if pods say that they have one:
 * one that exists tells its size.
 */
export async function findOrphans(
  some: readonly Pod[],
  zones: readonly Zone[],
  source: BoundSource,
): Promise<ZoneWithPods[]> {
  const byOwner = orphansByOwner(some, zones);
  const owned = [...byOwner].filter(([, own]) => own.some(({ owner }) => owner !== undefined)).map(([name]) => name);
  const owners = await readOwners(owned, some[0]?.namespace ?? "", source);
  const left = ordinalsOf([...byOwner.values()].flat());
  return [...byOwner]
    .map(([name, own]) => orphanedZone(name, own, { owner: owners.get(name), zones, left }))
    .toSorted(byName);
}

async function readOwners(
  names: readonly string[],
  namespace: string,
  source: BoundSource,
): Promise<Map<string, Zone>> {
  if (names.length === 0) return new Map();
  const wanted = new Set(names);
  const read = (set: StatefulSet): Zone | undefined =>
    wanted.has(set.metadata?.name ?? "") ? readZone(set) : undefined;
  const { items } = await readAll({ resource: statefulSets, query: { namespace }, read }, source, source.call);
  return new Map(items.flatMap((zone) => (zone ? [[zone.name, zone]] : [])));
}

interface ListToRead<O, T> {
  readonly resource: Resource<O>;
  readonly query: Query;
  readonly read: (object: O) => T;
}

/**
 * Reads a list to its end; only the results of `read` remain in memory. Throws the error of the API
 * server.
 */
export async function readAll<O, T>(
  { resource, query, read }: ListToRead<O, T>,
  { cluster }: Source,
  call?: Call,
): Promise<{ readonly items: T[]; readonly resourceVersion: string }> {
  const items: T[] = [];
  let version = "";
  for await (const page of cluster.list(resource, query, call)) {
    version = page.resourceVersion;
    for (const object of page.items) items.push(read(object));
  }
  return { items, resourceVersion: version };
}
