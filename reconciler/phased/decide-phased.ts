/**
 * Decides the next write for one PhasedRollout (§16). The first rule with an opinion wins.
 *
 *   deletion -> missing -> ownership -> strategy -> suspend -> scale-out -> freshness -> broken pod -> rollback -> idle
 *     -> restart, containment, hold -> the step (step.ts) -> release the next pod
 *
 * All memory is the status and the StatefulSet: a process may die between any two writes.
 */
import { firstOf } from "../../infra/rules.ts";
import { manageable } from "./manage.ts";
import { contained, held, idle, podsRescued, releasedReplaced, restarted, statusObserved } from "./partition.ts";
import { unchanged } from "./report.ts";
import { rolledBack } from "./roll-back.ts";
import { scaledOut } from "./scale-out.ts";
import { decideStep } from "./decide-step.ts";
import type { PhasedDecision, PhasedRule, PhasedSnapshot, TargetRule } from "./snapshot.ts";
import { isGuarded, type Target } from "./target.ts";

const decideTarget: TargetRule = firstOf([
  scaledOut,
  statusObserved,
  podsRescued,
  rolledBack,
  idle,
  restarted,
  contained,
  held,
  releasedReplaced,
  decideStep,
]);

const managed: PhasedRule = (snapshot) => {
  const { target } = snapshot;
  return target && decideTarget({ ...snapshot, target });
};

const decideRules: PhasedRule = firstOf([manageable, managed]);

/** The next decision; if no rule has an opinion, the status stays. */
export function decidePhased(snapshot: PhasedSnapshot): PhasedDecision {
  return decideRules(snapshot) ?? unchanged(snapshot);
}

/** True if the pods of the StatefulSet must be read for a decision. */
export function targetNeedsPods({
  rollout,
  target,
}: Pick<PhasedSnapshot, "rollout"> & { readonly target: Target }): boolean {
  const isOver = rollout.status.phase !== "Rolling" && rollout.status.phase !== "Stalled";
  const isSuspended = rollout.skipCheck && target.partition === 0;
  const isLeft =
    target.terminating || isSuspended || target.owner !== rollout.name || target.updateStrategy !== "RollingUpdate";
  return !isLeft && !(isOver && isGuarded(target));
}
