/**
 * The world of one pod: its group, or only the pods and zones that its budgets select if its StatefulSet is in no
 * group.
 */
import type { BudgetPod } from "../../reconciler/budget/budget-pod.ts";
import { absent } from "../../infra/errors.ts";
import { once } from "../../infra/once.ts";
import { statefulSets } from "../../infra/kubernetes/resources.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { matchesLabels } from "../../reconciler/budget/selector.ts";
import { gatherUnderBudget, listBudgets, type ListedBudget } from "../../reconciler/budget/act/gather-budget.ts";
import { openReservationStore } from "../../reconciler/budget/act/reservation-store.ts";
import type { World, WorldBudget } from "../../reconciler/plan/world.ts";
import type { GroupState } from "../decide/group-state.ts";
import type { Session } from "../session.ts";
import { findGroupOfPod } from "./groups.ts";
import { markOld } from "./ticking.ts";
import { gatherScene } from "./world.ts";

interface PodWorld {
  readonly world: World;
  /** Undefined for a pod that is in no group. */
  readonly state: GroupState | undefined;
}

/** The worlds of many pods: pods of one owner, and owners of one group, share their reads. */
export function createPodWorlds(session: Session): (pod: BudgetPod) => Promise<PodWorld> {
  const byGroup = new Map<string, Promise<PodWorld>>();
  return once(
    (pod) => gatherPodWorld(session, pod, byGroup),
    ({ owner, namespace, name }) => owner ?? `${namespace}/${name}`,
  );
}

async function gatherPodWorld(
  session: Session,
  pod: BudgetPod,
  byGroup = new Map<string, Promise<PodWorld>>(),
): Promise<PodWorld> {
  const group = await groupOf(session, pod);
  if (group === undefined) return { world: await gatherUngrouped(session, pod), state: undefined };
  const key = `${pod.namespace}/${group}`;
  const found = byGroup.get(key) ?? gatherGroupWorld(session, pod.namespace, group);
  byGroup.set(key, found);
  return await found;
}

async function gatherGroupWorld(session: Session, namespace: string, group: string): Promise<PodWorld> {
  const state = markOld(await findGroupOfPod(session, namespace, group), session.noTicks);
  return { world: await gatherScene(state, session), state };
}

async function groupOf({ cluster }: Session, { namespace, controller }: BudgetPod): Promise<string | undefined> {
  if (controller?.kind !== "StatefulSet") return undefined;
  const owner = await cluster.get(statefulSets, { namespace, name: controller.name }).catch(absent);
  return owner?.metadata?.labels?.[LABELS.rolloutGroup];
}

async function gatherUngrouped(session: Session, { namespace, labels }: BudgetPod): Promise<World> {
  const listed = (await listBudgets(namespace, session)) ?? [];
  const read = async (budget: ListedBudget): Promise<WorldBudget> => {
    const { content, matchLabels, object } = budget;
    const isRead = matchLabels && matchesLabels(matchLabels, labels) && !("problem" in content);
    if (!isRead) return { ...budget, reservations: {}, others: [] };
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
