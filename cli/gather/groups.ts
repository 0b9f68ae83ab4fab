/**
 * The groups of a namespace: the record of each, its StatefulSets in their present state, and the pods that StatefulSets
 * have left behind.
 */
import { absent, hasCode } from "../../infra/errors.ts";
import { collect } from "../../infra/kubernetes/collect.ts";
import type { Source } from "../../infra/kubernetes/context.ts";
import { rolloutGroups, type RolloutGroup } from "../../infra/kubernetes/custom-resources.ts";
import { pods } from "../../infra/kubernetes/resources.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { type Pod, readPod } from "../../reconciler/model/pod.ts";
import { findOrphans, gatherGroupZones, gatherZones, readAll } from "../../reconciler/snapshot/gather.ts";
import { nameOfGroup } from "../../reconciler/group-status/status.ts";
import { groupKey, type Zone } from "../../reconciler/model/zone.ts";
import { type GroupState, withOrphans } from "../decide/group-state.ts";
import { CliError } from "../exit.ts";
import type { Session } from "../session.ts";
import { findOnly, missingNamespace, suggest } from "./suggest.ts";

/** Reads the records of groups. Throws a `CliError` without the definition of RolloutGroups, where they are needed. */
type ReadRecords = (source: Source, namespace: string, group?: string) => Promise<ReadonlyMap<string, RolloutGroup>>;

/** For commands that decide by the StatefulSets alone. */
const withoutRecords: ReadRecords = async () => await Promise.resolve(new Map());

/** All groups of a namespace that have a StatefulSet, sorted. "" stands for all namespaces. */
export async function gatherGroups(
  source: Source,
  namespace: string,
  readRecords: ReadRecords = listRecorded,
): Promise<GroupState[]> {
  const list = await gatherZones([namespace], source);
  const [failure] = list.failures.values();
  if (failure !== undefined) throw failure;
  // Read after the StatefulSets: the records may then be newer than these, but never an older "ready".
  const recorded = await readRecords(source, namespace);
  const living = [...list.groups.values()].map((zones) => toState(zones, recorded));
  return living.toSorted((a, b) => (groupKey(a) < groupKey(b) ? -1 : 1));
}

/** One group by the value of its label; also one that has lost all its StatefulSets. Suggests names if there is none. */
export async function findGroup(
  session: Session,
  group: string,
  readRecords: ReadRecords = listRecorded,
): Promise<GroupState> {
  const { namespace } = session;
  // Several namespaces may have a group of the name. In one, only the group is read, as a namespace may be large.
  const zones = namespace === "" ? [] : await gatherGroupZones({ namespace, group }, session);
  if (zones.length > 0) return toState(zones, await readRecords(session, namespace, group));
  const living = await gatherGroups(session, namespace, readRecords);
  const found = living.filter((one) => one.group === group);
  const lost = found.length > 0 ? [] : await gatherLost(session, group);
  const only = findOnly([...found, ...lost], (one) => one.namespace, `group ${group}`);
  if (only) return only;
  const wrongNamespace = living.length === 0 ? await missingNamespace(session) : undefined;
  if (wrongNamespace) throw wrongNamespace;
  const where = namespace === "" ? "in any namespace" : `in namespace ${namespace}`;
  const names = living.map((one) => one.group);
  throw new CliError(`no rollout group ${JSON.stringify(group)} ${where}`, { hint: suggest(group, names, "groups") });
}

/** The same, without its record. */
export const findZones = async (session: Session, group: string): Promise<GroupState> =>
  await findGroup(session, group, withoutRecords);

/** The zones of a group that is to be changed, or shown zone by zone. */
export async function gatherZonesOf(session: Session, group: string): Promise<readonly Zone[]> {
  const { namespace, zones } = await findZones(session, group);
  if (zones.length > 0) return zones;
  throw new CliError(`no StatefulSet of group ${group} is left, only pods`, {
    hint: `zonewise -n ${namespace} explain ${group}`,
  });
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
  return zones.length === 0
    ? undefined
    : toState(zones, (await readRecorded(source, namespace, group)) ?? new Map<string, never>());
}

type Reader = Pick<Session, "cluster" | "clock" | "namespace">;

const groupOf = ({ namespace, labels }: Pod) => ({ namespace, group: labels[LABELS.rolloutGroup] ?? "" });

export const ofGroup = (group: string): string => `${LABELS.rolloutGroup}=${group}`;

/** Names that a selector leaves out: more would make its URL too long. */
const MOST_LEFT_OUT = 100;

/** Selects pods of groups other than these, as far as one selector can: it leaves groups out by name alone. */
export function ofOthers(groups: readonly GroupState[], { namespace }: Pick<Reader, "namespace">): string {
  const names = [...new Set(groups.map(({ group }) => group))];
  const isShort = namespace !== "" && names.length > 0 && names.length <= MOST_LEFT_OUT;
  return isShort ? `${LABELS.rolloutGroup},${LABELS.rolloutGroup} notin (${names.join(",")})` : LABELS.rolloutGroup;
}

async function listPods(
  { cluster, namespace }: Reader,
  labelSelector: string,
  isWanted: (pod: Pod) => boolean,
): Promise<readonly Pod[]> {
  const query = { ...(namespace !== "" && { namespace }), labelSelector };
  const read = (object: Parameters<typeof readPod>[0]): Pod[] => [readPod(object)].filter(isWanted);
  return (await readAll({ resource: pods, query, read }, { cluster })).items.flat();
}

/**
 * These groups with the pods that StatefulSets have left behind (§1.15), and the groups that have nothing but such pods.
 * `groups` are all of the namespace that the selector may find.
 */
export async function gatherOrphanedGroups(
  groups: readonly GroupState[],
  reader: Reader,
  selector: string = LABELS.rolloutGroup,
): Promise<readonly GroupState[]> {
  const owned = new Set(groups.flatMap(({ zones }) => zones.map(({ uid }) => uid)));
  const left = await listPods(reader, selector, ({ owner = "" }) => !owned.has(owner));
  const byGroup = Map.groupBy(left, (pod) => groupKey(groupOf(pod)));
  const known = new Set(groups.map(groupKey));
  const lost = [...byGroup].flatMap(([key, [pod]]) =>
    pod && !known.has(key) ? [{ ...groupOf(pod), zones: [], status: undefined, generation: 0 }] : [],
  );
  const look = async (state: GroupState): Promise<GroupState> => {
    const orphans = await findOrphans(byGroup.get(groupKey(state)) ?? [], state.zones, reader);
    return withOrphans({ ...state, orphans }, reader.clock.now());
  };
  const found = await Promise.all([...groups, ...lost].map(look));
  return found.filter(({ zones, orphans = [] }) => zones.length + orphans.length > 0);
}

/** The groups of this name that have lost all their StatefulSets; none if pods may not be listed. */
export async function gatherLost(reader: Reader, group: string): Promise<readonly GroupState[]> {
  return await gatherOrphanedGroups([], reader, ofGroup(group)).catch((error: unknown) => {
    // The name of another object may be no value of a label.
    if (!hasCode(error, "Forbidden", "Invalid")) throw error;
    return [];
  });
}

/** The zones of one group, with its record. The schema of the definition keeps it valid. */
function toState(zones: readonly Zone[], recorded: ReadonlyMap<string, RolloutGroup>): GroupState {
  const { namespace = "", group = "" } = zones[0] ?? {};
  const object = recorded.get(groupKey({ namespace, group: nameOfGroup(group) }));
  return { namespace, group, zones, status: object?.status ?? undefined, generation: object?.metadata.generation ?? 0 };
}

async function listRecorded(
  source: Source,
  namespace: string,
  group?: string,
): Promise<ReadonlyMap<string, RolloutGroup>> {
  const recorded = await readRecorded(source, namespace, group);
  if (recorded) return recorded;
  throw new CliError("CRD RolloutGroup not installed: no rollout is recorded", {
    hint: "kubectl apply -k infra/manifests/crds",
  });
}

/** Undefined without the definition of RolloutGroups. */
async function readRecorded(
  { cluster }: Source,
  namespace: string,
  group?: string,
): Promise<ReadonlyMap<string, RolloutGroup> | undefined> {
  const query = {
    ...(namespace !== "" && { namespace }),
    ...(group !== undefined && { fieldSelector: `metadata.name=${nameOfGroup(group)}` }),
  };
  const found = await collect(cluster.list(rolloutGroups, query)).catch(absent);
  return (
    found &&
    new Map(
      found.map((object) => {
        const { namespace: place = "", name = "" } = object.metadata;
        return [groupKey({ namespace: place, group: name }), object];
      }),
    )
  );
}
