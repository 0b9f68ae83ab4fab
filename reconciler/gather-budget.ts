/** Reads what evictions are decided by: the budgets first, then StatefulSets and pods, so that the write to the budget proves them fresh [13.1]. */
import type { Call, Cluster } from "../infra/cluster.ts";
import { absent } from "../infra/errors.ts";
import { disruptionBudgets, pods, statefulSets, type DisruptionBudget } from "../infra/resources.ts";
import { readMember, type BudgetZone, type Member } from "./budget/member.ts";
import type { StoredBudget } from "./budget/scope.ts";
import { BUDGET_KIND, parseBudget, selectorOf, type Budget } from "./budget/zpdb.ts";
import { readAll, type Freshness } from "./gather.ts";
import { byName, byOrdinal } from "./model/order.ts";
import { readZone, selectorText } from "./model/zone.ts";

/** A budget with the object that it was read from. */
export interface ListedBudget extends StoredBudget {
  readonly object: DisruptionBudget;
}

/** All budgets of the namespace ("" for all), valid or not; undefined if the cluster does not know the kind. */
export async function listBudgets(
  cluster: Cluster,
  namespace: string,
  freshness: Freshness,
  call?: Call,
): Promise<ListedBudget[] | undefined> {
  const query = namespace === "" ? {} : { namespace };
  const list = await readAll(cluster, disruptionBudgets, query, readBudget, freshness, call).catch(absent);
  return list?.items;
}

function readBudget(object: DisruptionBudget): ListedBudget {
  const { namespace = "", name = "", uid = "" } = object.metadata;
  // Items of a list may come without their kind.
  const content = parseBudget({ kind: BUDGET_KIND, ...object });
  return { ref: { kind: BUDGET_KIND, namespace, name, uid }, content, matchLabels: selectorOf(object), object };
}

export interface UnderBudget {
  /** In byte order of their names. */
  readonly zones: readonly BudgetZone[];
  /** All pods that the budget selects, whoever owns them, by name. */
  readonly pods: ReadonlyMap<string, Member>;
}

/** The StatefulSets and pods under a budget, in one round trip; in two if pods of a StatefulSet seem to be missing: they may lack the budget's labels. */
export async function gatherUnderBudget(cluster: Cluster, budget: Budget, freshness: Freshness, call?: Call): Promise<UnderBudget> {
  const { namespace, matchLabels } = budget;
  const query = { namespace, labelSelector: selectorText({ matchLabels }) };
  const [sets, selected] = await Promise.all([
    readAll(cluster, statefulSets, query, readZone, freshness, call),
    readAll(cluster, pods, query, readMember, freshness, call),
  ]);
  const complete = sets.items.toSorted(byName).map(async (zone): Promise<BudgetZone> => {
    const own = selected.items.filter((pod) => pod.owner === zone.uid);
    if (own.length >= Math.max(zone.replicas, zone.status.replicas)) return { ...zone, pods: own.toSorted(byOrdinal) };
    const all = await readAll(cluster, pods, { namespace, labelSelector: zone.selector }, readMember, freshness, call);
    return { ...zone, pods: all.items.filter((pod) => pod.owner === zone.uid).toSorted(byOrdinal) };
  });
  return { zones: await Promise.all(complete), pods: new Map(selected.items.map((pod) => [pod.name, pod])) };
}
