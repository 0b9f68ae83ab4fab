/**
 * The facts about budgets that one process remembers from request to request. They are hints: a wrong one costs calls,
 * but never makes a verdict wrong.
 */
import type { CachedDenial } from "../denial-cache.ts";
import type { Verdict } from "../verdict.ts";
import type { Budget } from "../zpdb.ts";

interface PodName {
  readonly namespace: string;
  readonly name: string;
}

interface BudgetName {
  readonly namespace: string;
  readonly name: string;
}

export interface BudgetMemory {
  /** The name of the budget that last selected the pods of the pod's StatefulSet. */
  readonly budgetOf: (pod: PodName) => string | undefined;
  /** Notes the budget of the pod's StatefulSet; forgets it if there is none. Any other verdict changes nothing. */
  readonly noteBudget: (pod: PodName, found: Budget | Verdict) => void;
  /** The pods that were unavailable when the budget of the pod was last read whole. */
  readonly denialOf: (pod: PodName) => CachedDenial | undefined;
  /**
   * The next denial then needs no list. The pods of the StatefulSets that the budget selects are most likely under it,
   * too.
   */
  readonly noteDenial: (denial: CachedDenial) => void;
  /** The budget that was noted for these pods is gone or invalid. */
  readonly forgetBudget: (budget: BudgetName, pods: readonly PodName[]) => void;
}

const MAX_STATEFULSETS = 10_000;
const MAX_DENIALS = 1000;

export const budgetKey = (namespace: string, budget: string): string => `${namespace}/${budget}`;

const OF_STATEFULSET = /^(?<set>.+)-\d+$/;

/** Names the pod's StatefulSet, derived from the pod's name; undefined if a StatefulSet's pod cannot have the name. */
export function statefulSetKey({ namespace, name }: PodName): string | undefined {
  const set = OF_STATEFULSET.exec(name)?.groups?.["set"];
  return set === undefined ? undefined : `${namespace}/${set}`;
}

export function createBudgetMemory(): BudgetMemory {
  /** Names of budgets by `statefulSetKey`. */
  const budgets = new Map<string, string>();
  /** By `budgetKey`. */
  const denials = new Map<string, CachedDenial>();
  const budgetOf: BudgetMemory["budgetOf"] = (pod) => budgets.get(statefulSetKey(pod) ?? "");

  return {
    budgetOf,
    noteBudget(pod, found) {
      const key = statefulSetKey(pod);
      if (key === undefined || ("reason" in found && found.reason !== "PodNotInScope")) return;
      if (budgets.size >= MAX_STATEFULSETS) budgets.clear();
      if ("reason" in found) budgets.delete(key);
      else budgets.set(key, found.name);
    },
    denialOf: (pod) => denials.get(budgetKey(pod.namespace, budgetOf(pod) ?? "")),
    noteDenial(denial) {
      const { namespace, name } = denial.budget;
      if (denials.size >= MAX_DENIALS) denials.clear();
      denials.set(budgetKey(namespace, name), denial);
      for (const zone of denial.zones) {
        const key = `${namespace}/${zone.name}`;
        if (!budgets.has(key)) budgets.set(key, name);
      }
    },
    forgetBudget({ namespace, name }, pods) {
      denials.delete(budgetKey(namespace, name));
      for (const pod of pods) budgets.delete(statefulSetKey(pod) ?? "");
    },
  };
}
