/** The groups of a namespace: the record of each, and its StatefulSets in their present state. */
import { absent, hasCode } from "../../infra/errors.ts";
import { collect, collectRead } from "../../infra/kubernetes/collect.ts";
import type { Source } from "../../infra/kubernetes/context.ts";
import {
  disruptionBudgets,
  phasedRollouts,
  rolloutGroups,
  type RolloutGroup,
} from "../../infra/kubernetes/custom-resources.ts";
import { pods, statefulSets } from "../../infra/kubernetes/resources.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { gatherGroupZones, gatherZones } from "../../reconciler/snapshot/gather.ts";
import { type RolloutGroupStatus, nameOfGroup } from "../../reconciler/group-status/status.ts";
import { groupKey, type Zone } from "../../reconciler/model/zone.ts";
import type { GroupState } from "../decide/group-state.ts";
import { CliError } from "../exit.ts";
import type { Session } from "../session.ts";
import { findOnly, missingNamespace, suggest } from "./suggest.ts";

/**
 * All groups, sorted. `namespace` is "" for all. Throws the error of the API server, or a `CliError` without the
 * definition of RolloutGroups.
 */
export async function gatherGroupStates(source: Source, namespace: string): Promise<GroupState[]> {
  const list = await gatherZones([namespace], source);
  const [failure] = list.failures.values();
  if (failure !== undefined) throw failure;
  // Read after the StatefulSets: the records may then be newer than these, but never an older "ready".
  const recorded = await listRecorded(source, namespace);
  const living = [...list.groups.values()].map((zones): GroupState => {
    const { namespace: place = "", group = "" } = zones[0] ?? {};
    return { namespace: place, group, zones, ...describe(recorded.get(keyOf(place, group))) };
  });
  return living.toSorted((a, b) => (groupKey(a) < groupKey(b) ? -1 : 1));
}

/** Groups that only pods name: no StatefulSet has their label. Those that `living` has are left out. */
export async function gatherLostGroups(
  source: Source,
  namespace: string,
  living: readonly NamedGroup[],
): Promise<GroupState[]> {
  const named = await listGroupsOfPods(source, namespace, living);
  const lost = new Map(named.map((one) => [groupKey(one), one]));
  for (const one of living) lost.delete(groupKey(one));
  // Once the last StatefulSet is gone, the reconciler removes the record.
  return [...lost.values()].map((one) => ({ ...one, zones: [], status: undefined, generation: 0 }));
}

/** All groups, those that only pods name as well. Throws as `gatherGroupStates` does. */
export async function gatherAllGroups(source: Source, namespace: string): Promise<readonly GroupState[]> {
  const living = await gatherGroupStates(source, namespace);
  return [...living, ...(await gatherLostGroups(source, namespace, living))];
}

type NamedGroup = Pick<GroupState, "namespace" | "group">;

/** Names that a selector leaves out: more would make its URL too long. */
const MOST_LEFT_OUT = 100;

/** The groups that pods name, without those that `living` has where these are few; none if pods may not be listed. */
async function listGroupsOfPods(
  { cluster }: Source,
  namespace: string,
  living: readonly NamedGroup[],
): Promise<readonly NamedGroup[]> {
  const names = [...new Set(living.map(({ group }) => group))];
  const isShort = namespace !== "" && names.length > 0 && names.length <= MOST_LEFT_OUT;
  const selected = isShort ? `,${LABELS.rolloutGroup} notin (${names.join(",")})` : "";
  const query = { ...(namespace !== "" && { namespace }), labelSelector: `${LABELS.rolloutGroup}${selected}` };
  return await collectRead(cluster.list(pods, query), ({ metadata }) => ({
    namespace: metadata?.namespace ?? "",
    group: metadata?.labels?.[LABELS.rolloutGroup] ?? "",
  })).catch((error: unknown) => {
    if (!hasCode(error, "Forbidden")) throw error;
    return [];
  });
}

/**
 * One group by the value of its label, without zones if only pods name it. Throws a `CliError` that suggests names if
 * there is none, and one without the definition of RolloutGroups.
 */
export async function findGroup(source: Session, namespace: string, group: string): Promise<GroupState> {
  const zones = await gatherByName(source, namespace, group);
  if (zones.length === 0) return await findByName(source, await gatherAllGroups(source, namespace), group);
  const recorded = await listRecorded(source, namespace, selectName(group));
  return { namespace, group, zones, ...describe(recorded.get(keyOf(namespace, group))) };
}

/**
 * The group of a pod; undefined if it has no zones. They suffice: without the definition of RolloutGroups it has no
 * record.
 */
export async function findGroupOfPod(
  source: Source,
  namespace: string,
  group: string,
): Promise<GroupState | undefined> {
  const zones = await gatherGroupZones({ namespace, group }, source);
  if (zones.length === 0) return undefined;
  const recorded = await readRecorded(source, namespace, selectName(group));
  return { namespace, group, zones, ...describe(recorded?.get(keyOf(namespace, group))) };
}

const selectName = (group: string): string => `metadata.name=${nameOfGroup(group)}`;
const keyOf = (namespace: string, group: string): string => groupKey({ namespace, group: nameOfGroup(group) });

/**
 * Reads only one group, as a namespace may be large. Resolves with none for all namespaces, where several groups may
 * have the same name.
 */
async function gatherByName(source: Source, namespace: string, group: string): Promise<readonly Zone[]> {
  return namespace === "" ? [] : await gatherGroupZones({ namespace, group }, source);
}

/** The zones of one group, with or without a record. Throws as `findGroup` does. */
export async function gatherZonesOf(source: Session, namespace: string, group: string): Promise<readonly Zone[]> {
  const zones = await gatherByName(source, namespace, group);
  if (zones.length > 0) return zones;
  const list = await gatherZones([namespace], source);
  const all = [...list.groups.values()].map((zones) => ({
    zones,
    namespace: zones[0]?.namespace ?? "",
    group: zones[0]?.group ?? "",
  }));
  return (await findByName(source, all, group)).zones;
}

/** True if the namespace has a StatefulSet in a group, a PhasedRollout or a budget; also if that may not be read. */
export async function hasOurs({ cluster, namespace }: Pick<Session, "cluster" | "namespace">): Promise<boolean> {
  const lists = [
    cluster.list(statefulSets, { namespace, labelSelector: LABELS.rolloutGroup }),
    cluster.list(phasedRollouts, { namespace }),
    cluster.list(disruptionBudgets, { namespace }),
  ];
  const isIn = await Promise.all(
    lists.map(async (list) => ((await collect<unknown>(list).catch(absent)) ?? []).length > 0),
  ).catch((error: unknown) => {
    if (!hasCode(error, "Forbidden")) throw error;
    return [true];
  });
  return isIn.includes(true);
}

async function findByName<T extends Pick<GroupState, "namespace" | "group">>(
  session: Session,
  all: readonly T[],
  group: string,
): Promise<T> {
  const { namespace } = session;
  const only = findOnly(
    all.filter((one) => one.group === group),
    (one) => one.namespace,
    `group ${group}`,
  );
  if (only) return only;
  const wrongNamespace = all.length === 0 ? await missingNamespace(session) : undefined;
  if (wrongNamespace) throw wrongNamespace;
  const where = namespace === "" ? "in any namespace" : `in namespace ${namespace}`;
  const names = all.map((one) => one.group);
  throw new CliError(`no rollout group ${JSON.stringify(group)} ${where}`, { hint: suggest(group, names, "groups") });
}

function describe(object: RolloutGroup | undefined): Pick<GroupState, "status" | "generation"> {
  // The schema of the definition keeps it valid.
  const status: Partial<RolloutGroupStatus> | undefined = object?.status ?? undefined;
  return { status, generation: object?.metadata.generation ?? 0 };
}

async function listRecorded(
  source: Source,
  namespace: string,
  fieldSelector?: string,
): Promise<ReadonlyMap<string, RolloutGroup>> {
  const recorded = await readRecorded(source, namespace, fieldSelector);
  if (recorded) return recorded;
  throw new CliError("CRD RolloutGroup not installed: no rollout is recorded", {
    hint: "kubectl apply -k infra/manifests/crds",
  });
}

/** Undefined without the definition of RolloutGroups. */
async function readRecorded(
  { cluster }: Source,
  namespace: string,
  fieldSelector?: string,
): Promise<ReadonlyMap<string, RolloutGroup> | undefined> {
  const query = { ...(namespace !== "" && { namespace }), ...(fieldSelector !== undefined && { fieldSelector }) };
  const found = await collect(cluster.list(rolloutGroups, query)).catch(absent);
  return (
    found &&
    new Map(
      found.map((object) => {
        const { namespace: place = "", name: group = "" } = object.metadata;
        return [groupKey({ namespace: place, group }), object];
      }),
    )
  );
}
