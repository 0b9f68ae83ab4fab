/**
 * The rollback: the update revision is the current one again, and pods of a reverted template are left. They return
 * without checks, from the highest index down; each that is ready only if its disruption budget allows it, and the
 * next one only once it is replaced.
 *
 *   say so in the status -> Parallel: delete what is not ready -> at most one pod released: the highest -> OrderedReady: all ready -> release it
 */
import { firstOf, type Rule } from "../../infra/rules.ts";
import { isReady, isTerminating } from "../model/health.ts";
import type { Pod } from "../model/pod.ts";
import { reportRollout, writeTime } from "./report.ts";
import type { PhasedDecision, TargetRule, TargetSnapshot } from "./snapshot.ts";
import { findCondition } from "./status.ts";
import { isCurrent } from "./step.ts";
import { findUpwards, nameTargetRevision } from "./target.ts";

interface StalePod {
  readonly index: number;
  readonly pod: Pod;
}

/** In ascending order of their indexes; at least one. */
type BackRule = Rule<[snapshot: TargetSnapshot, stale: readonly StalePod[]], PhasedDecision>;

const ROLLING_BACK = ["False", "RollingBack"] as const;

const isAnnounced = (snapshot: TargetSnapshot): boolean =>
  isCurrent(snapshot) && findCondition(snapshot.rollout.status, "Updated")?.reason === "RollingBack";

const describe = ({ target }: TargetSnapshot): string =>
  `${target.name} returns to revision ${nameTargetRevision(target)}`;

/**
 * The pods that are left, also terminating ones. Missing pods do not count: they are created at the current revision.
 */
function stalePods({ target, pods }: TargetSnapshot): StalePod[] {
  return [...pods]
    .filter(([index, pod]) => index < target.replicas && pod.revision !== target.status.updateRevision)
    .map(([index, pod]) => ({ index, pod }))
    .toSorted((a, b) => a.index - b.index);
}

/** The status comes first: replacing these pods is not a rollout that completes. */
const announced: BackRule = (snapshot) => {
  if (isAnnounced(snapshot)) return undefined;
  const { now } = snapshot;
  return reportRollout(snapshot, {
    phase: "Rolling",
    message: describe(snapshot),
    updated: ROLLING_BACK,
    started: writeTime(now),
    dueAt: now,
  });
};

/**
 * Under Parallel the StatefulSet controller replaces outdated pods, ready or not. With the partition alone it would
 * begin with ready pods above, or a budget that the unready pods have spent would hold all of them. Under OrderedReady
 * it waits until a pod is ready, and so do we.
 */
const unreadyReplaced: BackRule = ({ target }, stale) => {
  const found = target.ordered ? undefined : stale.find(({ pod }) => !isReady(pod) && !isTerminating(pod));
  if (!found) return undefined;
  const { pod } = found;
  return {
    action: "replacePod",
    pod,
    asksBudget: false,
    message: `${pod.name} is not ready, and of a template that was reverted`,
  };
};

/** More than one pod is released already, by the partition at which the revert found the rollout. */
const oneReleased: BackRule = (snapshot, stale) => {
  const highest = stale.at(-1)?.index ?? 0;
  if (snapshot.target.partition >= highest) return undefined;
  return { action: "setPartition", partition: highest, reason: "RollBack", message: describe(snapshot) };
};

const released: BackRule = (snapshot, stale) => {
  const { target } = snapshot;
  const highest = stale.at(-1);
  if (!highest || highest.index === target.partition || isTerminating(highest.pod) || isHeldUp(snapshot))
    return undefined;
  const { index: partition, pod } = highest;
  return { action: "setPartition", partition, reason: "RollBack", message: describe(snapshot), pod };
};

/** The StatefulSet controller would replace nothing now: a reservation could expire before it does. */
function isHeldUp({ target: { ordered, replicas }, pods }: TargetSnapshot): boolean {
  return ordered && findUpwards(pods, [0, replicas], (pod) => !isReady(pod)) !== undefined;
}

const waiting: BackRule = (snapshot) =>
  reportRollout(snapshot, { phase: "Rolling", message: describe(snapshot), updated: ROLLING_BACK });

const nextBack: BackRule = firstOf([announced, unreadyReplaced, oneReleased, released, waiting]);

/** True while its status names no other revision than the latest, and no pod is left at another. */
export function isSettled(snapshot: TargetSnapshot): boolean {
  const { currentRevision, updateRevision } = snapshot.target.status;
  return currentRevision === updateRevision && stalePods(snapshot).length === 0;
}

/**
 * The StatefulSet was recreated around pods of another one (deleted without its pods): its status names no other
 * revision than the latest, which these pods have never had. They roll out by checks.
 */
function hasForeignPods(snapshot: TargetSnapshot, stale: readonly StalePod[]): boolean {
  const { rollout, target } = snapshot;
  return (
    rollout.status.targetUID !== target.uid ||
    (isCurrent(snapshot) && !isAnnounced(snapshot)) ||
    stale.some(({ pod }) => isOlder(pod, target))
  );
}

/** A pod of the same second counts as older: at worst a pod that would go back at once is checked. */
const isOlder = (pod: Pod, { createdAt }: TargetSnapshot["target"]): boolean =>
  pod.createdAt !== undefined && createdAt !== undefined && pod.createdAt <= createdAt;

/**
 * Silent unless pods of a reverted template are left. Pods that are not ready go back even while others are checked:
 * no other controller would replace them while no pod is released.
 */
export const rolledBack: TargetRule = (snapshot) => {
  const { currentRevision, updateRevision } = snapshot.target.status;
  const stale = stalePods(snapshot);
  if (currentRevision !== updateRevision || stale.length === 0) return undefined;
  if (!hasForeignPods(snapshot, stale)) return nextBack(snapshot, stale);
  const own = stale.filter(({ pod }) => !isOlder(pod, snapshot.target));
  return isCurrent(snapshot) ? unreadyReplaced(snapshot, own) : undefined;
};
