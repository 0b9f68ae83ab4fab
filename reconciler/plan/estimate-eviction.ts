/**
 * When a pod may be evicted, by the plan of its group: the steps and waits of plan-group.ts are simulated until the
 * budget allows it. An estimate is given only if all that it depends on has been seen or is recorded:
 *
 *   a gate holds a zone                             --> none: nobody knows when its checks pass
 *   no pod of the group shows how long a start takes --> none
 *   a pod has been starting for twice that long      --> none: it is not like the others
 *   the plan stops before the budget allows it       --> none: somebody has to act first
 *   the plan is longer than its bound (`stepsFor`)   --> none: the eviction is far away
 */
import type { BudgetPod } from "../budget/budget-pod.ts";
import { isAllowed } from "../budget/verdict.ts";
import { judgeDisruption } from "./budget-verdicts.ts";
import { nextStep } from "./next-step.ts";
import { advance, holdsOf } from "./plan-group.ts";
import type { World } from "./world.ts";

/** Steps and waits that are simulated in any group. A longer plan ends days away. */
const MAX_STEPS = 2000;

/**
 * Steps times pods of the group. Each step takes 2.5 to 5 µs per pod: with this bound the estimate takes 0.1 to 0.2 s
 * at most. Meanwhile the process does nothing else, and does not renew its Lease either.
 */
const MAX_POD_STEPS = 40_000;

/** The steps and waits that are simulated in a group of so many pods: 2000 up to 20 pods, 44 for 900, at least 1. */
export function stepsFor(pods: number): number {
  return Math.max(1, Math.min(MAX_STEPS, Math.floor(MAX_POD_STEPS / Math.max(1, pods))));
}

/** A start that takes this many times as long as those of other pods is not like them. */
const PATIENCE = 2;

/**
 * Milliseconds since the epoch, later than `world.now`; undefined if nobody knows. If the rollout replaces the pod
 * before, that time ends the wait as well.
 */
export function estimateEviction(world: World, { uid }: Pick<BudgetPod, "uid">): number | undefined {
  if (!isPredictable(world)) return undefined;
  const others = world.budgets.flatMap((budget) => budget.others);
  const steps = stepsFor([...world.zones, ...others].flatMap(({ pods }) => pods).length);
  let current: World | undefined = world;
  for (let step = 0; current && step < steps; step++) {
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
