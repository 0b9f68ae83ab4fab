/** What `kubectl delete pod` would get, and whether anything guards deletions at all (§5.12). Pure. */
import type { PodObject } from "../../infra/kubernetes/resources.ts";
import { ANNOTATIONS, LABELS } from "../../reconciler/model/annotations.ts";
import type { BudgetPod } from "../../reconciler/budget/budget-pod.ts";
import { deleteByHand, type NotAsked, podNotAsked } from "../../reconciler/budget/deletion.ts";
import type { DeletionGuard } from "../../reconciler/budget/deletion-guard.ts";
import { judgeDisruption } from "../../reconciler/plan/budget-verdicts.ts";
import type { World } from "../../reconciler/plan/world.ts";
import { allow, deny, explainVerdict, type Explanation } from "./answer.ts";

const DELETE = "delete by hand";

/** Why no guard looks at a pod, whoever deletes it. */
const UNSEEN: Partial<Readonly<Record<NotAsked, string>>> = {
  NoRolloutGroup: `no guard sees a pod without the label ${LABELS.rolloutGroup}, which belongs into the template`,
  NoStatefulSet: "no guard sees a pod of another controller than a StatefulSet",
  GoneAlready: "it is terminating or does not run any more: its deletion takes nothing",
  ByHand: `its annotation ${ANNOTATIONS.deleteByHand} lets it go, whatever its budget says`,
};

/** It informs: whether a person may delete the pod says nothing about whether it may be evicted or rolled out. */
export function explainDeletion(object: PodObject, pod: BudgetPod, { guard, world }: Facts): Explanation {
  return { ...answer(object, pod, { guard, world }), informs: true };
}

interface Facts {
  readonly guard: DeletionGuard;
  readonly world: World;
}

function answer(object: PodObject, pod: BudgetPod, { guard, world }: Facts): Explanation {
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
    case "webhook": {
      const judged = explainVerdict(judgeDisruption(world, pod).verdict, DELETE, { scene: world, blockers: [] });
      const message = `${judged.message}; ${guard.message}`;
      if (judged.allowed) return { ...judged, message };
      return { ...judged, message, remedy: `${judged.remedy}; or let it go: ${deleteByHand(pod.namespace, pod.name)}` };
    }
    case "none":
      return allow(DELETE, `${guard.message}; to have it refused in a second zone: ${guard.remedy}`);
    case "unknown":
      return allow(DELETE, guard.message);
    default:
      return guard.by satisfies never;
  }
}
