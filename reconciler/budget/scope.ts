/** Finds the budget that selects a pod (§5.1.3, §5.1.4). */
import { parseTimestamp } from "../../infra/timestamp.ts";
import type { ObjectRef } from "../model/decision.ts";
import { isTerminating } from "../model/health.ts";
import { type Labels, matchesLabels } from "../model/label-selector.ts";
import { listSome } from "../../infra/cut.ts";
import type { Zone } from "../model/zone.ts";
import type { Pod } from "../model/pod.ts";
import type { Budget } from "./zpdb.ts";
import { verdict, type Verdict } from "./verdict.ts";
import type { BudgetProblem } from "./partition.ts";

/** A budget as stored, which may be invalid. */
export interface StoredBudget {
  readonly ref: ObjectRef;
  readonly content: Budget | BudgetProblem;
  /** Read even if the rest of the budget is invalid; undefined if they cannot be read. */
  readonly matchLabels: Labels | undefined;
}

/** True if the budget selects these labels. One whose labels cannot be read, which is invalid, may select any. */
export const selectsLabels = ({ matchLabels }: Pick<StoredBudget, "matchLabels">, labels: Labels): boolean =>
  matchLabels === undefined || matchesLabels(matchLabels, labels);

/**
 * The budget that, by its labels alone, selects all that the others select: without the others no pod loses its
 * budget.
 */
export const findCovering = <B extends Pick<StoredBudget, "matchLabels">>(budgets: readonly B[]): B | undefined =>
  budgets.find(({ matchLabels: kept }) =>
    budgets.every(({ matchLabels }) => kept && matchLabels && matchesLabels(kept, matchLabels)),
  );

/** The pod that a disruption can reach. */
export interface DisruptionTarget {
  /** The UID that the disruption is pinned to, if any. */
  readonly uid?: string | undefined;
  /** It is pinned to no UID: it reaches any pod of that name. */
  readonly unpinned?: boolean | undefined;
  /** When the pod of that UID was made, RFC 3339, if it is known to be there still. */
  readonly createdAt?: string | undefined;
}

/**
 * The one valid budget that selects the pod, or the verdict without one. Only a pod that can never become ready again
 * needs no budget: a Pending pod may be ready by the time the API server deletes it.
 */
export function findBudget(
  pod: Pod,
  budgets: readonly StoredBudget[],
  { uid, unpinned, createdAt }: DisruptionTarget = {},
): Budget | Verdict {
  if (uid !== undefined && uid !== pod.uid) return judgeOther(pod, createdAt);
  const found = budgets.filter((budget) => selectsLabels(budget, pod.labels));
  if (isTerminating(pod) && unpinned && mayBeUnder(pod, found, budgets))
    return verdict("PodTerminating", `${pod.name} is terminating; try again once it is gone`, [pod]);
  if (isTerminating(pod) || ["Succeeded", "Failed"].includes(pod.phase))
    return verdict("PodNotReady", "pod is not ready", [pod]);
  return budgets.length > 0 ? onlyValid(found, pod) : verdict("PodNotInScope", NO_BUDGET, [pod]);
}

/** By labels that are too long to be kept, it may be under any budget. */
const mayBeUnder = ({ textProblem }: Pod, found: readonly StoredBudget[], all: readonly StoredBudget[]): boolean =>
  (textProblem === undefined ? found : all).length > 0;

const NO_BUDGET = "no zoned pod disruption budget selects the pod";

/** The disruption cannot reach this pod; one that was not made after its own is not the successor of that, but old. */
function judgeOther(pod: Pod, createdAt: string | undefined): Verdict {
  if (createdAt !== undefined && !isLater(pod, createdAt))
    return verdict("NotNow", "the API server has shown an earlier pod of this name", [pod]);
  return verdict("OtherPod", "the eviction is for another pod of this name, and will have no effect", [pod]);
}

/** True if the pod was surely made after this time, which has whole seconds. */
const isLater = (pod: Pod, time: string): boolean =>
  (parseTimestamp(pod.createdAt ?? "") ?? -Infinity) > (parseTimestamp(time) ?? Infinity);

function onlyValid(found: readonly StoredBudget[], pod: Pod): Budget | Verdict {
  if (pod.textProblem !== undefined) return verdict("LabelsTooLong", `${pod.name}: ${pod.textProblem}`, [pod]);
  const [only] = found;
  if (!only) return verdict("PodNotInScope", NO_BUDGET, [pod]);
  const refs = found.map(({ ref }) => ref);
  if (found.length > 1) {
    const names = listSome(refs.map(({ name }) => name));
    return verdict("SeveralBudgets", `multiple zoned pod disruption budgets found for pod: ${names}`, [pod, ...refs]);
  }
  return "problem" in only.content ? refuseInvalid(only, only.content, pod) : only.content;
}

function refuseInvalid({ ref }: StoredBudget, { problem }: BudgetProblem, object: ObjectRef): Verdict {
  return verdict("BudgetInvalid", `zoned pod disruption budget ${ref.name} is not valid: ${problem}`, [object, ref]);
}

/** The budgets that count the pods of a StatefulSet, by its labels; the verdict on one that is invalid. */
export function findBudgetsOfZone<B extends StoredBudget>(
  zone: Pick<Zone, "labels" | "textProblem"> & ObjectRef,
  budgets: readonly B[],
): Verdict | readonly B[] {
  if (budgets.length > 0 && zone.textProblem !== undefined)
    return verdict("LabelsTooLong", `${zone.name}: ${zone.textProblem}`, [zone]);
  const found = budgets.filter((budget) => selectsLabels(budget, zone.labels));
  const invalid = found.find(({ content }) => "problem" in content);
  return invalid && "problem" in invalid.content ? refuseInvalid(invalid, invalid.content, zone) : found;
}
