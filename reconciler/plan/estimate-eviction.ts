/**
 * When a pod may be evicted, by the plan of its group: the steps and waits of plan-group.ts are gone through until the
 * budget allows it. An estimate is given only where all that it depends on has been seen or is written down somewhere:
 *
 *   a gate holds a zone                             --> none: nobody knows when its checks pass
 *   no pod of the group shows how long a start takes --> none
 *   a pod has been starting for twice that long      --> none: it is not like the others
 *   the plan stops before the budget allows it       --> none: somebody has to act first
 */
import type { BudgetPod } from "../budget/budget-pod.ts";
import { isAllowed } from "../budget/verdict.ts";
import { judgeDisruption } from "./budget-verdicts.ts";
import { nextStep } from "./next-step.ts";
import { advance, holdsOf } from "./plan-group.ts";
import type { World } from "./world.ts";

/** Steps and waits that are gone through. What takes longer is days away. */
const MAX_STEPS = 2000;

/** A start that takes this many times as long as those of other pods is not like them. */
const PATIENCE = 2;

/**
 * Milliseconds since the epoch, later than `world.now`; undefined if nobody knows. A pod that the rollout replaces before
 * is gone at that time, which ends the wait as well.
 */
export function estimateEviction(world: World, { uid }: Pick<BudgetPod, "uid">): number | undefined {
  if (!isPredictable(world)) return undefined;
  let current: World | undefined = world;
  for (let step = 0; current && step < MAX_STEPS; step++) {
    const pod = current.zones.flatMap(({ pods }) => pods).find((one) => one.uid === uid);
    if (!pod || isAllowed(judgeDisruption(current, pod, { uid }).verdict))
      return current.now > world.now ? current.now : undefined;
    const outlook = nextStep(current);
    if (holdsOf(outlook).some(({ reason }) => reason.startsWith("Gate"))) return undefined;
    current = advance(current, outlook, true);
  }
  return undefined;
}

function isPredictable({ zones, readyMs, now }: World): boolean {
  return zones.every((zone) => {
    const usualMs = readyMs.get(zone.uid) ?? 0;
    const isLate = ({ ready, broken, notReadySince: since }: BudgetPod): boolean =>
      !ready && broken === undefined && since !== undefined && now - since > PATIENCE * usualMs;
    return usualMs > 0 && !zone.pods.some(isLate);
  });
}
