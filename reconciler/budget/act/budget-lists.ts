/** The lists of budgets of one tick: each is read once, on its first use. */
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Log } from "../../../infra/log.ts";
import { type BudgetSource, listBudgets, type ListedBudget, type OnBudgets } from "./gather-budget.ts";

export interface BudgetLists {
  /** The budgets of the tick's namespaces; a namespace that cannot be read yields none. Never rejects. */
  readonly all: () => Promise<readonly ListedBudget[]>;
  /**
   * The budgets of one namespace, none if they cannot be read. Must be called before the pods of its groups are read: a
   * new reservation would seem expired otherwise. Never rejects.
   */
  readonly of: (namespace: string) => Promise<readonly ListedBudget[]>;
}

export interface BudgetReader extends Pick<BudgetSource, "compilePartition"> {
  readonly cluster: Cluster;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
  readonly onBudgets: OnBudgets;
}

/** For one tick over these namespaces, "" for all. */
export function createBudgetLists(namespaces: readonly string[], reader: BudgetReader): BudgetLists {
  const lists = new Map<string, Promise<readonly ListedBudget[]>>();

  function listOnce(scope: string): Promise<readonly ListedBudget[]> {
    const list = lists.get(scope) ?? read(scope, reader);
    lists.set(scope, list);
    return list;
  }

  return {
    all: async () => (await Promise.all(namespaces.map(listOnce))).flat(),
    async of(namespace) {
      const list = await listOnce(namespaces.includes("") ? "" : namespace);
      return list.filter(({ ref }) => ref.namespace === namespace);
    },
  };
}

async function read(
  scope: string,
  { cluster, log, onBudgets, compilePartition }: BudgetReader,
): Promise<readonly ListedBudget[]> {
  try {
    const budgets = await listBudgets(scope, {
      cluster,
      ...(compilePartition && { compilePartition }),
    });
    onBudgets(scope, budgets);
    return budgets ?? [];
  } catch (error) {
    log.warn("the disruption budgets could not be read", { error });
    return [];
  }
}
