/** The answer that `kubectl delete pod` would get, and whether anything guards deletions at all (§5.12). Pure. */
import type { PodObject } from "../../infra/kubernetes/resources.ts";
import { ANNOTATIONS, LABELS } from "../../reconciler/model/annotations.ts";
import type { Pod } from "../../reconciler/model/pod.ts";
import { deleteByHand, type NotAsked, podNotAsked } from "../../reconciler/budget/deletion.ts";
import { judgeDisruption } from "../../reconciler/plan/budget-verdicts.ts";
import type { World } from "../../reconciler/plan/world.ts";
import { allow, deny, explainVerdict, type Explanation } from "./answer.ts";
import type { DeletionGuard } from "./deletion-guard.ts";

const DELETE = "delete by hand";

/** The reasons why no guard judges a pod's deletion, by any user. */
const UNSEEN: Partial<Readonly<Record<NotAsked, string>>> = {
  NoRolloutGroup: `no guard sees a pod without the label ${LABELS.rolloutGroup}, which belongs into the template`,
  NoStatefulSet: "no guard sees a pod of another controller than a StatefulSet",
  GoneAlready: "it is terminating or does not run any more: its deletion takes nothing",
  ByHand: `its annotation ${ANNOTATIONS.deleteByHand} lets it go, whatever its budget says`,
};

/**
 * Answers no if the pod's budget says no, even if nothing would refuse the deletion, or if it could not be read whether
 * anything would. It only informs: a permitted deletion says nothing about an eviction or a rollout.
 */
export function explainDeletion(object: PodObject, pod: Pod, { guard, world }: Facts): Explanation {
  return { ...answer(object, pod, { guard, world }), informs: true };
}

interface Facts {
  readonly guard: DeletionGuard;
  readonly world: World;
}

function answer(object: PodObject, pod: Pod, { guard, world }: Facts): Explanation {
  const unseen = UNSEEN[podNotAsked({ pod: object }) ?? "ByController"];
  if (unseen !== undefined) return allow(DELETE, unseen);
  const refuse = (reason: string, rule: string): Explanation =>
    deny({
      question: DELETE,
      reason,
      rule,
      message: guard.message,
      objects: [],
      remedy: [guard.remedy, `evict it, or let it go: ${deleteByHand(pod.namespace, pod.name)}`]
        .filter(Boolean)
        .join("; "),
    });
  switch (guard.by) {
    case "policy":
      return refuse("DeletionPolicy", "a running pod of a rollout group is evicted, not deleted");
    case "down":
      return refuse("WebhookDown", "a webhook asks the disruption budget about every deletion");
    case "webhook":
    case "none":
    case "unknown":
      return answerByBudget(guard.by, pod, { guard, world });
    default:
      return guard.by satisfies never;
  }
}

/** Guards that refuse nothing by themselves. */
type ByBudget = "webhook" | "none" | "unknown";

/** The effect of the budget's no on the deletion, as the beginning of the message. */
const DENIED: Readonly<Record<ByBudget, string>> = {
  webhook: "",
  none: "nothing would refuse the deletion: ",
  unknown: "it could not be read whether anything would refuse the deletion: ",
};

/** The budget's answer, whether or not anything asks it. */
function answerByBudget(by: ByBudget, pod: Pod, { guard, world }: Facts): Explanation {
  const judged = explainVerdict(judgeDisruption(world, pod).verdict, DELETE, { scene: world, blockers: [] });
  if (judged.allowed) {
    const allowed: Readonly<Record<ByBudget, string>> = {
      webhook: `${judged.message}; ${guard.message}`,
      none: `${guard.message}; to have it refused in a second zone: ${guard.remedy}`,
      unknown: guard.message,
    };
    return { ...judged, message: allowed[by] };
  }
  const message = `${judged.message}; ${DENIED[by]}${guard.message}`;
  const next =
    by === "webhook"
      ? `or let it go: ${deleteByHand(pod.namespace, pod.name)}`
      : guard.remedy && `to have it refused: ${guard.remedy}`;
  return { ...judged, message, remedy: [judged.remedy, next].filter(Boolean).join("; ") };
}
