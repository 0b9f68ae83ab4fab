/**
 * Decides whether the StatefulSet may and should be managed: deletion, existence, ownership, strategy and suspension,
 * in this order.
 */
import { firstOf } from "../../infra/rules.ts";
import type { Pod } from "../model/pod.ts";
import { FINALIZER, type PhasedRollout } from "./phased-rollout.ts";
import { reportRollout, unchanged } from "./report.ts";
import type { PhasedRule, PhasedSnapshot, TargetSnapshot } from "./snapshot.ts";
import { findCondition } from "./status.ts";
import { isUpdated } from "./step.ts";
import type { Target } from "./target.ts";

/** A deleted PhasedRollout claims nothing any more: it only gives its StatefulSet back. Only the owner does. */
const deleted: PhasedRule = (snapshot) => {
  const { rollout, target } = snapshot;
  if (!rollout.terminating) return undefined;
  if (target && !target.terminating && target.owner === rollout.name) {
    const partition = rollout.onDelete === "freeze" ? undefined : releasedPartition(snapshot);
    return {
      action: "releaseTarget",
      partition,
      pods: countReleased({ ...snapshot, target }, partition),
      frozen: rollout.onDelete === "freeze",
    };
  }
  return rollout.finalizers.includes(FINALIZER) ? { action: "dropFinalizer" } : unchanged(snapshot);
};

/** The partition from before the adoption. OnDelete has none. */
function releasedPartition({ target }: PhasedSnapshot): number | undefined {
  return target?.updateStrategy === "RollingUpdate" ? (target.originalPartition ?? 0) : undefined;
}

/** The number of outdated pods that a lower partition releases. */
function countReleased({ target, pods }: TargetSnapshot, partition = Infinity): number {
  const isReleased = ([index, pod]: readonly [number, Pod]): boolean =>
    index >= partition && index < target.partition && !isUpdated(target.status.updateRevision, pod);
  return [...pods].filter(isReleased).length;
}

const exists: PhasedRule = (snapshot) => {
  const { rollout, target } = snapshot;
  if (target && !target.terminating) return undefined;
  const what = target ? "is being deleted" : "does not exist";
  return reportRollout(
    { ...snapshot, target: undefined },
    { phase: "ErrorSTSNotFound", message: `StatefulSet ${rollout.targetRef} ${what}` },
  );
};

const cannotManage = (snapshot: PhasedSnapshot, message: string) =>
  reportRollout(snapshot, { phase: "ErrorCannotManage", message });

const specReadable: PhasedRule = (snapshot) => {
  const { problem } = snapshot.rollout;
  return problem === undefined ? undefined : cannotManage(snapshot, problem);
};

/** Zones are rolled out by their group, one zone at a time. */
const notOfGroup: PhasedRule = (snapshot) => {
  const { target } = snapshot;
  if (!target?.isZone) return undefined;
  return cannotManage(
    snapshot,
    `StatefulSet ${target.name} has the label rollout-group: guard its group with a RolloutGate instead`,
  );
};

/** The first PhasedRollout that writes its name wins, until it is gone or has another target. */
const ownedByNoOther: PhasedRule = (snapshot) => {
  const { rollout, target, owner } = snapshot;
  if (!target || !owner || owner.name === rollout.name || owner.targetRef !== target.name) return undefined;
  return cannotManage(snapshot, `StatefulSet ${target.name} is managed by PhasedRollout ${owner.name}`);
};

/** The finalizer is set before the StatefulSet is changed: otherwise nobody would release the StatefulSet. */
const finalizerFirst: PhasedRule = ({ rollout }) =>
  rollout.finalizers.includes(FINALIZER) ? undefined : { action: "addFinalizer" };

const claimed: PhasedRule = ({ rollout, target }) => {
  if (!target || target.owner === rollout.name) return undefined;
  const isFirst = target.owner === undefined && target.originalPartition === undefined && !hasManaged(rollout, target);
  return { action: "claim", original: isFirst ? target.partition : undefined };
};

/** Somebody has removed our claim: the partition is ours, and returning to it would freeze the StatefulSet. */
function hasManaged({ status }: PhasedRollout, { uid }: Target): boolean {
  return status.targetUID === uid && findCondition(status, "Ready")?.status === "True";
}

const rollingUpdateOnly: PhasedRule = (snapshot) => {
  const { target } = snapshot;
  if (!target || target.updateStrategy === "RollingUpdate") return undefined;
  return cannotManage(
    snapshot,
    `StatefulSet ${target.name} has update strategy ${target.updateStrategy}; RollingUpdate is needed`,
  );
};

const notSuspended: PhasedRule = (snapshot) => {
  const { rollout, target } = snapshot;
  if (!target || !rollout.skipCheck) return undefined;
  if (target.partition === 0)
    return reportRollout(snapshot, {
      phase: "Suspended",
      message: `skipCheck is set: StatefulSet ${target.name} rolls without checks`,
    });
  const pods = countReleased({ ...snapshot, target }, 0);
  const message = `skipCheck is set: ${pods} pods of StatefulSet ${target.name} are released without checks`;
  return { action: "setPartition", partition: 0, reason: "Suspend", message };
};

/** Silent if the StatefulSet is there, ours, and may be managed. */
export const manageable: PhasedRule = firstOf([
  deleted,
  exists,
  specReadable,
  notOfGroup,
  ownedByNoOther,
  finalizerFirst,
  claimed,
  rollingUpdateOnly,
  notSuspended,
]);
