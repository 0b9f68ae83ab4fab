/**
 * Finds the budget that selects a pod, by a read of the pod, and remembers it for the other pods of its StatefulSet.
 */
import type { Call } from "../../../infra/kubernetes/cluster.ts";
import { absent } from "../../../infra/errors.ts";
import { pods } from "../../../infra/kubernetes/resources.ts";
import type { DisruptionRequest, ReserverTools } from "./disruption-request.ts";
import { readBudgetPod } from "../budget-pod.ts";
import { findBudget } from "../scope.ts";
import { type DisruptionResult, judged, undecided, verdict } from "../verdict.ts";
import type { ListedBudget } from "./gather-budget.ts";

export interface BatchContext {
  readonly budgets: readonly ListedBudget[];
  readonly tools: ReserverTools;
  readonly call: Call;
}

/** The budget that is noted for the pod's StatefulSet, or else the one that selects the pod by its labels. */
export async function chooseBudget(
  request: DisruptionRequest,
  context: BatchContext,
): Promise<ListedBudget | DisruptionResult> {
  const noted = context.tools.memory.budgetOf(request);
  const listed = context.budgets.find(({ ref }) => ref.name === noted);
  return listed && !("problem" in listed.content) ? listed : await findBudgetOfPod(request, context);
}

/** Reads the pod to find its budget. Rejects with the error of the API server. */
export async function findBudgetOfPod(
  request: DisruptionRequest,
  context: BatchContext,
): Promise<ListedBudget | DisruptionResult> {
  const { budgets, tools, call } = context;
  if (request.rollout && budgets.length === 0)
    return judged(verdict("PodNotInScope", "there is no zoned pod disruption budget"));
  const pod = await tools.cluster.get(pods, request, call).catch(absent);
  if (!pod) return judged(verdict("PodNotFound", `pods "${request.name}" not found`));
  const found = findBudget(readBudgetPod(pod), budgets, request);
  tools.memory.noteBudget(request, found);
  if ("reason" in found) return judged(found);
  return budgets.find(({ ref }) => ref.name === found.name) ?? undecided();
}
