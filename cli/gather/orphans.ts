/** Reads the pods that StatefulSets have left behind, as zones (§1.15). */
import { pods } from "../../infra/kubernetes/resources.ts";
import { type Pod, readPod } from "../../reconciler/model/pod.ts";
import { groupKey, type Zone, type ZoneWithPods } from "../../reconciler/model/zone.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { findOrphans, gatherGroupZones, readAll } from "../../reconciler/snapshot/gather.ts";
import type { Session } from "../session.ts";

type Reader = Pick<Session, "cluster" | "namespace">;

/** A group by the value of its label, with its zones. */
interface Group extends Pick<Zone, "namespace" | "group"> {
  readonly zones: readonly Zone[];
}

const keyOf = ({ namespace, labels }: Pod): string => groupKey({ namespace, group: labels[LABELS.rolloutGroup] ?? "" });

/** The pods with the label of a group in the namespace of the command, or in all, with one list. */
async function readGrouped({ cluster, namespace }: Reader, isWanted: (pod: Pod) => boolean): Promise<readonly Pod[]> {
  const query = { ...(namespace !== "" && { namespace }), labelSelector: LABELS.rolloutGroup };
  const read = (object: Parameters<typeof readPod>[0]): Pod[] => [readPod(object)].filter(isWanted);
  return (await readAll({ resource: pods, query, read }, { cluster })).items.flat();
}

/** Each of these groups with its orphaned zones. */
export async function gatherOrphans<G extends Group>(
  groups: readonly G[],
  reader: Reader,
): Promise<readonly (G & { readonly orphans: readonly ZoneWithPods[] })[]> {
  const owned = new Set(groups.flatMap(({ zones }) => zones.map(({ uid }) => uid)));
  const left = Map.groupBy(await readGrouped(reader, ({ owner = "" }) => !owned.has(owner)), keyOf);
  const find = async (group: G) => ({
    ...group,
    orphans: await findOrphans(left.get(groupKey(group)) ?? [], group.zones, reader),
  });
  return await Promise.all(groups.map(find));
}

/** The pods that a StatefulSet of this name has left behind, with the group that they name; undefined without any. */
export async function findOrphanedZone(
  name: string,
  reader: Reader,
): Promise<{ readonly group: string; readonly orphan: ZoneWithPods } | undefined> {
  const own = await readGrouped(reader, ({ madeBy }) => madeBy === name);
  const group = own[0]?.labels[LABELS.rolloutGroup] ?? "";
  const zones = await gatherGroupZones({ namespace: reader.namespace, group }, reader);
  const [orphan] = await findOrphans(own, zones, reader);
  return orphan && { group, orphan };
}
