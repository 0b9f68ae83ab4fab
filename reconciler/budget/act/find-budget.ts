/**
 * Finds the budget that selects a pod, by a read of the pod, and remembers it for the other pods of its StatefulSet.
 */
import type { Call } from "../../../infra/kubernetes/cluster.ts";
import { absent } from "../../../infra/errors.ts";
import { pods } from "../../../infra/kubernetes/resources.ts";
import type { DisruptionRequest, ReserverState } from "./disruption-request.ts";
import { readBudgetPod } from "../budget-pod.ts";
import { findBudget } from "../scope.ts";
import { type DisruptionResult, judged, undecided, verdict, type Verdict } from "../verdict.ts";
import type { Budget } from "../zpdb.ts";
import type { ListedBudget } from "./gather-budget.ts";

export interface BatchContext {
  readonly budgets: readonly ListedBudget[];
  readonly state: ReserverState;
  readonly call: Call;
}

const OF_STATEFULSET = /^(?<set>.+)-\d+$/;

/**
 * The key of the pod's StatefulSet in the budget cache, derived from the pod's name; undefined if a StatefulSet's pod
 * cannot have the name.
 */
export function cacheKey({ namespace, name }: Pick<DisruptionRequest, "namespace" | "name">): string | undefined {
  const set = OF_STATEFULSET.exec(name)?.groups?.["set"];
  return set === undefined ? undefined : `${namespace}/${set}`;
}

/** The cached budget of the pod's StatefulSet, or else the one that its labels are found to select. */
export async function chooseBudget(
  request: DisruptionRequest,
  context: BatchContext,
): Promise<ListedBudget | DisruptionResult> {
  const cached = context.state.budgetCache.get(cacheKey(request) ?? "");
  const listed = context.budgets.find(({ ref }) => ref.name === cached);
  return listed && !("problem" in listed.content) ? listed : await findBudgetOfPod(request, context);
}

/** Reads the pod to find its budget. Rejects with the error of the API server. */
export async function findBudgetOfPod(
  request: DisruptionRequest,
  context: BatchContext,
): Promise<ListedBudget | DisruptionResult> {
  const { budgets, state, call } = context;
  if (request.rollout && budgets.length === 0)
    return judged(verdict("PodNotInScope", "there is no zoned pod disruption budget"));
  const pod = await state.cluster.get(pods, request, call).catch(absent);
  if (!pod) return judged(verdict("PodNotFound", `pods "${request.name}" not found`));
  const found = findBudget(readBudgetPod(pod), budgets, request);
  cacheBudget(request, found, state);
  if ("reason" in found) return judged(found);
  return budgets.find(({ ref }) => ref.name === found.name) ?? undecided();
}

const MAX_CACHED = 10_000;

/** Caches the budget of the pod's StatefulSet; forgets it if there is none. */
export function cacheBudget(request: DisruptionRequest, found: Budget | Verdict, { budgetCache }: ReserverState): void {
  const key = cacheKey(request);
  if (key === undefined || ("reason" in found && found.reason !== "PodNotInScope")) return;
  if (budgetCache.size >= MAX_CACHED) budgetCache.clear();
  if ("reason" in found) budgetCache.delete(key);
  else budgetCache.set(key, found.name);
}
