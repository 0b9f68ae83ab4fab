/** Reads the cluster into snapshots: StatefulSets first, then pods (§13.3), each list once. */
import type { Call, Query } from "../../infra/kubernetes/cluster.ts";
import { readEach } from "../../infra/kubernetes/read-each.ts";
import { type PodObject, pods, statefulSets, type Resource } from "../../infra/kubernetes/resources.ts";
import type { Source } from "../../infra/kubernetes/actor.ts";
import { visitEach } from "../../infra/slots.ts";
import { LABELS } from "../model/annotations.ts";
import { byName, groupBy } from "../model/order.ts";
import { type Pod, readPod } from "../model/pod.ts";
import {
  groupKey,
  readZone,
  withPods,
  type GroupSnapshot,
  type Zone,
  type ZoneList,
  type ZoneWithPods,
} from "../model/zone.ts";
import { planLists } from "./shared-lists.ts";

/**
 * Lists the StatefulSets of every rollout group, with one call a namespace. If no namespace can be read, throws the
 * error of the first: `StaleRead`, or that of the API server.
 */
export async function gatherZones(namespaces: readonly string[], source: Source, call?: Call): Promise<ZoneList> {
  const { results, failures } = await readEach(namespaces, async (namespace) => {
    const query = { ...(namespace && { namespace }), labelSelector: LABELS.rolloutGroup };
    return { namespace, ...(await readAll({ resource: statefulSets, query, read: readZone }, source, call)) };
  });
  const zones = results.flatMap(({ items }) => items);
  return {
    failures,
    groups: groupBy(zones.toSorted(byName), groupKey),
    resourceVersions: new Map(results.map(({ namespace, resourceVersion }) => [namespace, resourceVersion])),
  };
}

/**
 * Reads the zones of one group again, in byte order of their names. Throws `StaleRead`, or the error of the API server.
 */
export async function gatherGroupZones(
  { namespace, group }: Pick<Zone, "namespace" | "group">,
  source: Source,
  call?: Call,
): Promise<readonly Zone[]> {
  const query = { namespace, labelSelector: `${LABELS.rolloutGroup}=${group}` };
  return (await readAll({ resource: statefulSets, query, read: readZone }, source, call)).items.toSorted(byName);
}

/** Completes the zones of one group with their pods, as `gatherGroups` does. */
export async function gatherGroup(zones: readonly Zone[], source: Source, call?: Call): Promise<GroupSnapshot> {
  return snapshotOf(zones, await readPods(zones, source, call));
}

/**
 * Completes the zones of several groups of one namespace with their pods, in as few lists as their selectors allow, 8
 * at a time. Throws `StaleRead`, or the error of the API server.
 */
export async function gatherGroups(
  groups: readonly (readonly Zone[])[],
  source: Source,
  call?: Call,
): Promise<readonly GroupSnapshot[]> {
  const complete = await readPods(groups.flat(), source, call);
  return groups.map((zones) => snapshotOf(zones, complete));
}

type CompleteZone = (zone: Zone) => ZoneWithPods;

/** Lists of pods in flight for one group, or for those that share lists. */
const LISTS_AT_ONCE = 8;

async function readPods(zones: readonly Zone[], source: Source, call?: Call): Promise<CompleteZone> {
  const found = new Map<Zone, Pod[]>(zones.map((zone) => [zone, []]));
  await visitEach(planLists(zones), { atOnce: LISTS_AT_ONCE }, async ({ labelSelector, zones: [first], zoneOf }) => {
    const query = { namespace: first?.namespace ?? "", labelSelector };
    const visit = (object: PodObject): void => {
      const pod = readPod(object);
      const zone = zoneOf(pod.owner, object.metadata?.labels ?? {});
      if (zone) found.get(zone)?.push(pod);
    };
    await visitAll({ resource: pods, query, visit }, source, call);
  });
  return (zone) => withPods(zone, found.get(zone) ?? []);
}

function snapshotOf(zones: readonly Zone[], complete: CompleteZone): GroupSnapshot {
  const [first] = zones;
  return {
    namespace: first?.namespace ?? "",
    name: first?.group ?? "",
    zones: zones.map(complete),
  };
}

interface ListToVisit<O> {
  readonly resource: Resource<O>;
  readonly query: Query;
  readonly visit: (object: O) => void;
}

interface ListToRead<O, T> {
  readonly resource: Resource<O>;
  readonly query: Query;
  readonly read: (object: O) => T;
}

interface WholeList<T> {
  readonly items: T[];
  readonly resourceVersion: string;
}

/**
 * Reads a list to its end; only the results of `read` remain in memory. Throws `StaleRead`, or the error of the API
 * server.
 */
export async function readAll<O, T>(
  { resource, query, read }: ListToRead<O, T>,
  source: Source,
  call?: Call,
): Promise<WholeList<T>> {
  const items: T[] = [];
  const visit = (object: O): void => void items.push(read(object));
  return { items, resourceVersion: await visitAll({ resource, query, visit }, source, call) };
}

/** Visits the objects of a list as they come; resolves with its version. */
async function visitAll<O>(
  { resource, query, visit }: ListToVisit<O>,
  { cluster, freshness }: Source,
  call?: Call,
): Promise<string> {
  const confirmFresh = freshness.expect(resource);
  let version = "";
  for await (const page of cluster.list(resource, query, call)) {
    version = page.resourceVersion;
    for (const object of page.items) visit(object);
  }
  confirmFresh(version);
  return version;
}
