/** Reads a group as a tick sees it, with the settings of the reconciler that serves it; and a pod with its group. */
import { absent, hasCode } from "../../infra/errors.ts";
import { collect } from "../../infra/kubernetes/collect.ts";
import { type PodDisruptionBudget, podDisruptionBudgets, statefulSets } from "../../infra/kubernetes/resources.ts";
import { once } from "../../infra/once.ts";
import type { Guard } from "../../reconciler/budget/guard.ts";
import { selectsLabels } from "../../reconciler/budget/zpdb.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import type { Pod } from "../../reconciler/model/pod.ts";
import { leaderAmong, readZone, type Zone } from "../../reconciler/model/zone.ts";
import { gatherBudgets, gatherWorld, needsTimes } from "../../reconciler/plan/act/gather-world.ts";
import { judgeDisruption, type JudgedDisruption } from "../../reconciler/plan/budget-verdicts.ts";
import type { World } from "../../reconciler/plan/world.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import type { Scene } from "../decide/answer.ts";
import { type GroupState, withOrphans } from "../decide/group-state.ts";
import { findUnbudgeted, type Unbudgeted } from "../decide/unbudgeted.ts";
import type { Session } from "../session.ts";
import { findGroupOfPod } from "./groups.ts";
import { createGuards, isRefusing } from "./guard.ts";
import { markOld } from "./ticking.ts";

type Reader = Pick<Session, "cluster" | "clock" | "settings" | "io" | "noTicks">;

/** A group as it is now, and its world as a tick would see it. Rejects with the error of the API server. */
export async function gatherNow(
  found: GroupState,
  reader: Reader,
): Promise<{ readonly state: GroupState; readonly world: World & Scene }> {
  const known = markOld(found, reader.noTicks);
  const read = await gatherScene(known, reader);
  // Of a group that has lost all its StatefulSets, only its label finds the pods.
  const orphans = read.orphans ?? known.orphans ?? [];
  const world = { ...read, orphans };
  return { state: withOrphans({ ...known, orphans }, world.now), world };
}

async function gatherScene(ref: Pick<Zone, "namespace" | "group">, reader: Reader): Promise<World & Scene> {
  const reading = reader.settings(ref.namespace);
  // It is awaited once the zones are read.
  reading.catch(() => {});
  const world = await gatherWorld(ref, reader, async (zones) => {
    const { zoneTracker, assumed } = await reading;
    const note = `note: assuming the default zone tracker ${zoneTracker}: ${assumed}\n`;
    if (assumed !== undefined && needsTimes(zones)) reader.io.warn(note);
    return zoneTracker;
  });
  const isLost = (zone: Zone): boolean => zone.scaling.leader !== undefined && !leaderAmong(world.zones, zone);
  // Where the leader of a zone is instead, and whose label is mistyped, only all StatefulSets show.
  return world.zones.some(isLost) ? { ...world, all: await gatherAll(ref, reader) } : world;
}

async function gatherAll({ namespace }: Pick<Zone, "namespace">, reader: Reader): Promise<readonly Zone[]> {
  return (await readAll({ resource: statefulSets, query: { namespace }, read: readZone }, reader)).items;
}

interface PodWorld {
  /** Only the pods and zones that the budgets of the pod select, if its StatefulSet is in no group. */
  readonly world: World;
  /** The value of the label; undefined for a pod that is in no group. */
  readonly group: string | undefined;
  /** Undefined for a pod that is in no group, or in one that has no zones any more. */
  readonly state: GroupState | undefined;
}

/** A pod with all that tells whether it may be evicted. */
export interface PodView extends PodWorld, JudgedDisruption {
  readonly pod: Pod;
  /** What becomes of evictions in its namespace. */
  readonly seen: Guard;
  /** The same, if it matters to the pod: a budget selects it, or every eviction is refused. */
  readonly guard: Guard | undefined;
  /** Set if nothing refuses its eviction. */
  readonly unbudgeted: Unbudgeted | undefined;
}

/** Views of many pods: pods of one owner, owners of one group, and pods of one namespace share their reads. */
export function createPodViews(session: Session): (pod: Pod) => Promise<PodView> {
  const byGroup = new Map<string, ReturnType<typeof gatherGroupWorld>>();
  const worlds = once(
    (pod: Pod) => gatherPodWorld(session, pod, byGroup),
    ({ owner, madeBy, namespace, name }) => owner ?? `${namespace}/${madeBy ?? name}`,
  );
  const guards = createGuards(session);
  const others = once(async (namespace: string) => await gatherPodBudgets(session, namespace));
  return async (pod) => {
    const [found, seen] = await Promise.all([worlds(pod), guards(pod.namespace)]);
    const { world, group } = found;
    const judged = judgeDisruption(world, pod);
    const isSelected = judged.verdict.reason !== "PodNotInScope";
    const guard = isSelected || isRefusing(seen) ? seen : undefined;
    const unbudgeted =
      group === undefined || guard ? undefined : findUnbudgeted({ pod, world, group }, await others(pod.namespace));
    return { pod, ...found, ...judged, seen, guard, unbudgeted };
  };
}

/** The PodDisruptionBudgets of a namespace; none if they may not be read. */
const gatherPodBudgets = async ({ cluster }: Session, namespace: string): Promise<readonly PodDisruptionBudget[]> =>
  await collect(cluster.list(podDisruptionBudgets, { namespace })).catch((error: unknown) => {
    if (!hasCode(error, "Forbidden")) throw error;
    return [];
  });

async function gatherPodWorld(
  session: Session,
  pod: Pod,
  byGroup: Map<string, ReturnType<typeof gatherGroupWorld>>,
): Promise<PodWorld> {
  const group = await groupOf(session, pod);
  const key = `${pod.namespace}/${group}`;
  const found = byGroup.get(key) ?? gatherGroupWorld(session, pod.namespace, group);
  byGroup.set(key, found);
  const grouped = await found;
  return { group, ...(grouped ?? { world: await gatherUngrouped(session, pod), state: undefined }) };
}

/** Undefined without a group, and for one that has no zones. */
async function gatherGroupWorld(
  session: Session,
  namespace: string,
  group: string | undefined,
): Promise<Pick<PodWorld, "world" | "state"> | undefined> {
  const found = group === undefined ? undefined : await findGroupOfPod(session, namespace, group);
  return found && (await gatherNow(found, session));
}

/** That of its StatefulSet; of one that is gone, or has left its group, the one that the pod names (§1.15). */
async function groupOf({ cluster }: Session, { namespace, madeBy, labels }: Pod): Promise<string | undefined> {
  if (madeBy === undefined) return undefined;
  const owner = await cluster.get(statefulSets, { namespace, name: madeBy }).catch(absent);
  return owner?.metadata?.labels?.[LABELS.rolloutGroup] ?? labels[LABELS.rolloutGroup];
}

async function gatherUngrouped(session: Session, { namespace, labels }: Pod): Promise<World> {
  const budgets = await gatherBudgets(namespace, session, { isWanted: (budget) => selectsLabels(budget, labels) });
  return {
    namespace,
    group: "",
    zones: [],
    budgets,
    gates: [],
    tracked: undefined,
    references: new Map(),
    preparedAt: new Map(),
    readyMs: new Map(),
    now: session.clock.now(),
  };
}
