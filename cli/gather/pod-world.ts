/**
 * The world of one pod: its group, or only the pods and zones that its budgets select if its StatefulSet is in no
 * group.
 */
import type { Pod } from "../../reconciler/model/pod.ts";
import { absent, hasCode } from "../../infra/errors.ts";
import { collect } from "../../infra/kubernetes/collect.ts";
import { once } from "../../infra/once.ts";
import { type PodDisruptionBudget, podDisruptionBudgets, statefulSets } from "../../infra/kubernetes/resources.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { selectsLabels } from "../../reconciler/budget/zpdb.ts";
import {
  gatherUnderBudget,
  listBudgets,
  type ListedBudget,
  openReservationStore,
} from "../../reconciler/budget/act/budget-store.ts";
import type { World, WorldBudget } from "../../reconciler/plan/world.ts";
import type { GroupState } from "../decide/group-state.ts";
import type { Session } from "../session.ts";
import { findGroupOfPod } from "./groups.ts";
import { markOld } from "./ticking.ts";
import { gatherScene } from "./world.ts";

interface PodWorld {
  readonly world: World;
  /** The value of the label; undefined for a pod that is in no group. */
  readonly group: string | undefined;
  /** Undefined for a pod that is in no group, or in one that has no zones any more. */
  readonly state: GroupState | undefined;
}

/** The worlds of many pods: pods of one owner, and owners of one group, share their reads. */
export function createPodWorlds(session: Session): (pod: Pod) => Promise<PodWorld> {
  const byGroup = new Map<string, ReturnType<typeof gatherGroupWorld>>();
  return once(
    (pod) => gatherPodWorld(session, pod, byGroup),
    ({ owner, madeBy, namespace, name }) => owner ?? `${namespace}/${madeBy ?? name}`,
  );
}

/** The PodDisruptionBudgets of a namespace; none if they may not be read. */
export type PodBudgets = (namespace: string) => Promise<readonly PodDisruptionBudget[]>;

export const createPodBudgets = ({ cluster }: Session): PodBudgets =>
  once(
    async (namespace: string) =>
      await collect(cluster.list(podDisruptionBudgets, { namespace })).catch((error: unknown) => {
        if (!hasCode(error, "Forbidden")) throw error;
        return [];
      }),
  );

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
  if (!found) return undefined;
  const state = markOld(found, session.noTicks);
  return { world: await gatherScene(state, session), state };
}

/** That of its StatefulSet; of one that is gone, or has left its group, the one that the pod names (orphans.ts). */
async function groupOf({ cluster }: Session, { namespace, madeBy, labels }: Pod): Promise<string | undefined> {
  if (madeBy === undefined) return undefined;
  const owner = await cluster.get(statefulSets, { namespace, name: madeBy }).catch(absent);
  return owner?.metadata?.labels?.[LABELS.rolloutGroup] ?? labels[LABELS.rolloutGroup];
}

async function gatherUngrouped(session: Session, { namespace, labels }: Pod): Promise<World> {
  const listed = (await listBudgets(namespace, session)) ?? [];
  const read = async (budget: ListedBudget): Promise<WorldBudget> => {
    const { content, object } = budget;
    if (!selectsLabels(budget, labels) || "problem" in content) return { ...budget, reservations: {}, others: [] };
    const { reservations } = await openReservationStore(session.cluster, object, {});
    return { ...budget, reservations, others: (await gatherUnderBudget(content, session)).zones };
  };
  const budgets = await Promise.all(listed.map(read));
  const empty = {
    zones: [],
    gates: [],
    tracked: undefined,
    references: new Map(),
    preparedAt: new Map(),
    readyMs: new Map(),
  };
  return {
    ...empty,
    namespace,
    group: "",
    budgets,
    clusterDomain: (await session.settings(namespace)).clusterDomain,
    now: session.clock.now(),
  };
}
