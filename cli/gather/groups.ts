/** The groups of a namespace: what is recorded of each, and its StatefulSets as they are. */
import { hasCode } from "../../infra/errors.ts";
import type { Source } from "../../infra/kubernetes/actor.ts";
import { rolloutGroups, type RolloutGroup } from "../../infra/kubernetes/resources.ts";
import { gatherGroupZones, gatherZones } from "../../reconciler/snapshot/gather.ts";
import type { RolloutGroupStatus } from "../../reconciler/group-status/status.ts";
import { nameOfGroup } from "../../reconciler/group-status/name.ts";
import { groupKey, type Zone } from "../../reconciler/model/zone.ts";
import type { GroupState } from "../decide/group-state.ts";
import { CliError } from "../exit.ts";
import { suggest } from "./suggest.ts";

/**
 * All groups, sorted. `namespace` is "" for all. Throws the error of the API server, a `CliError` without the
 * definition of RolloutGroups.
 */
export async function gatherGroups(source: Source, namespace: string): Promise<GroupState[]> {
  const list = await gatherZones([namespace], source);
  const [failure] = list.failures.values();
  if (failure !== undefined) throw failure;
  // After the StatefulSets: the records may be newer than they are, and then hold no older "ready".
  const recorded = await listRecorded(source, namespace);
  const living = [...list.groups.values()].map((zones): GroupState => {
    const { namespace: place = "", group = "" } = zones[0] ?? {};
    const object = recorded.get(groupKey({ namespace: place, group: nameOfGroup(group) }));
    return { namespace: place, group, zones, ...describe(object) };
  });
  return living.toSorted((a, b) => (groupKey(a) < groupKey(b) ? -1 : 1));
}

/** One group by the value of its label. Throws a `CliError` that suggests names if there is none. */
export async function findGroup(source: Source, namespace: string, group: string): Promise<GroupState> {
  const zones = await gatherByName(source, namespace, group);
  if (zones.length === 0) return findOnly(await gatherGroups(source, namespace), namespace, group);
  const name = nameOfGroup(group);
  const recorded = await listRecorded(source, namespace, `metadata.name=${name}`);
  return { namespace, group, zones, ...describe(recorded.get(groupKey({ namespace, group: name }))) };
}

/**
 * Reads one group, as a namespace may be large. Resolves with none for all namespaces, where several groups may have
 * the name.
 */
async function gatherByName(source: Source, namespace: string, group: string): Promise<readonly Zone[]> {
  return namespace === "" ? [] : await gatherGroupZones({ namespace, group }, source);
}

/** The zones of one group, whatever is recorded of it. Throws as `findGroup` does. */
export async function gatherZonesOf(source: Source, namespace: string, group: string): Promise<readonly Zone[]> {
  const zones = await gatherByName(source, namespace, group);
  if (zones.length > 0) return zones;
  const list = await gatherZones([namespace], source);
  const all = [...list.groups.values()].map((zones) => ({
    zones,
    namespace: zones[0]?.namespace ?? "",
    group: zones[0]?.group ?? "",
  }));
  return findOnly(all, namespace, group).zones;
}

function findOnly<T extends Pick<GroupState, "namespace" | "group">>(
  all: readonly T[],
  namespace: string,
  group: string,
): T {
  const found = all.filter((one) => one.group === group);
  const [only] = found;
  if (only && found.length === 1) return only;
  const places = found.map((one) => one.namespace).join(", ");
  if (only) throw new CliError(`group ${group} is in several namespaces: ${places}`, { hint: "say one with -n" });
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
  { cluster }: Source,
  namespace: string,
  fieldSelector?: string,
): Promise<ReadonlyMap<string, RolloutGroup>> {
  const recorded = new Map<string, RolloutGroup>();
  const query = { ...(namespace !== "" && { namespace }), ...(fieldSelector !== undefined && { fieldSelector }) };
  try {
    for await (const page of cluster.list(rolloutGroups, query))
      for (const object of page.items)
        recorded.set(
          groupKey({ namespace: object.metadata.namespace ?? "", group: object.metadata.name ?? "" }),
          object,
        );
  } catch (error) {
    if (!hasCode(error, "NotFound")) throw error;
    throw new CliError("the cluster has no definition of RolloutGroups: nothing is recorded of a rollout", {
      hint: "install it: kubectl apply -k infra/manifests/crds",
    });
  }
  return recorded;
}
