/** The lists of budgets of one tick: each is read once, on its first use. */
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Log } from "../../../infra/log.ts";
import { createFreshness } from "../../../infra/kubernetes/freshness.ts";
import type { OnBudgets } from "./disruption-request.ts";
import { type BudgetSource, listBudgets, type ListedBudget } from "./gather-budget.ts";

export interface BudgetLists {
  /** The namespaces of the tick, "" for all. */
  readonly namespaces: readonly string[];
  /** The lists by namespace, "" for all. */
  readonly lists: Map<string, Promise<readonly ListedBudget[]>>;
}

export interface BudgetReader extends Pick<BudgetSource, "compilePartition"> {
  readonly cluster: Cluster;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
  readonly onBudgets: OnBudgets;
}

export const startBudgetLists = (namespaces: readonly string[]): BudgetLists => ({ namespaces, lists: new Map() });

/** The budgets of one namespace; never rejects. */
export async function readNamespace(
  namespace: string,
  tick: BudgetLists,
  reader: BudgetReader,
): Promise<readonly ListedBudget[]> {
  const list = await listOnce(tick.namespaces.includes("") ? "" : namespace, tick, reader);
  return list.filter(({ ref }) => ref.namespace === namespace);
}

/**
 * The budgets of a namespace, "" for all, read on the first call of the tick; none if they cannot be read. Never
 * rejects.
 */
export function listOnce(
  scope: string,
  { lists }: BudgetLists,
  reader: BudgetReader,
): Promise<readonly ListedBudget[]> {
  const list = lists.get(scope) ?? read(scope, reader);
  lists.set(scope, list);
  return list;
}

async function read(
  scope: string,
  { cluster, clock, log, onBudgets, compilePartition }: BudgetReader,
): Promise<readonly ListedBudget[]> {
  try {
    const budgets = await listBudgets(scope, {
      cluster,
      freshness: createFreshness(clock, log),
      ...(compilePartition && { compilePartition }),
    });
    onBudgets(scope, budgets);
    return budgets ?? [];
  } catch (error) {
    log.warn("the disruption budgets could not be read", { error });
    return [];
  }
}
