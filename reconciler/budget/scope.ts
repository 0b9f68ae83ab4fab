/** Which budget a pod is subject to (§5.1.3, §5.1.4). */
import type { ObjectRef } from "../model/decision.ts";
import type { Member } from "./member.ts";
import { matchesLabels, type MatchLabels } from "./selector.ts";
import { verdict, type Verdict } from "./verdict.ts";
import type { Problem } from "./partition.ts";
import type { Budget } from "./zpdb.ts";

/** A budget as stored, which may be invalid. */
export interface StoredBudget {
  readonly ref: ObjectRef;
  readonly content: Budget | Problem;
  /** What it selects, valid or not; undefined if that cannot be read either: it then selects nothing. */
  readonly matchLabels: MatchLabels | undefined;
}

/** Who wants to disrupt, as far as it matters to which pod that can happen. */
export interface Reach {
  /** The UID that the disruption is bound to, if it is to one. */
  readonly uid?: string | undefined;
  /** It is bound to none, and goes by the pod's name alone. */
  readonly unpinned?: boolean | undefined;
}

/**
 * The one valid budget that selects the pod, or what is to be said without one. Only a pod that cannot become ready any more goes unasked: one
 * that is Pending may be ready by the time the API server gets round to delete it.
 */
export function findBudget(pod: Member, budgets: readonly StoredBudget[], { uid, unpinned }: Reach = {}): Budget | Verdict {
  if (uid !== undefined && uid !== pod.uid)
    return verdict("OtherPod", "the eviction is for another pod of this name, and will have no effect", [pod]);
  const found = budgets.filter(({ matchLabels }) => matchLabels && matchesLabels(matchLabels, pod.labels));
  if (pod.terminating && unpinned && found.length > 0)
    return verdict("PodTerminating", `${pod.name} is terminating; try again once it is gone`, [pod]);
  if (pod.terminating || ["Succeeded", "Failed"].includes(pod.phase)) return verdict("PodNotReady", "pod is not ready", [pod]);
  const [only] = found;
  if (!only) return verdict("PodNotInScope", "no zoned pod disruption budget selects the pod", [pod]);
  const refs = found.map(({ ref }) => ref);
  if (found.length > 1) {
    const names = refs.map(({ name }) => name).join(", ");
    return verdict("SeveralBudgets", `multiple zoned pod disruption budgets found for pod: ${names}`, [pod, ...refs]);
  }
  if ("problem" in only.content) {
    return verdict("BudgetInvalid", `zoned pod disruption budget ${only.ref.name} is not valid: ${only.content.problem}`, [pod, ...refs]);
  }
  return only.content;
}
