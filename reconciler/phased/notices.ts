/** The notices to users when the status of a PhasedRollout changes: each once, as the status remembers it. */
import type { PhasedRollout } from "./phased-rollout.ts";
import { findCondition, type PhasedStatus } from "./status.ts";

export interface Notice {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

type NoticeRule = (before: PhasedStatus, after: PhasedStatus, rollout: PhasedRollout) => Notice | undefined;

const isRolling = ({ phase }: PhasedStatus): boolean => phase === "Rolling" || phase === "Stalled";
const isRollingBack = (status: PhasedStatus): boolean =>
  isRolling(status) && findCondition(status, "Updated")?.reason === "RollingBack";
const messageIn = (status: PhasedStatus, type = "Updated"): string => findCondition(status, type)?.message ?? "";

/** Reported again when the cause changes within the phase. */
const cannotManage: NoticeRule = (before, after) => {
  const message = messageIn(after);
  const isNew = before.phase !== after.phase || messageIn(before) !== message;
  return after.phase === "ErrorCannotManage" && isNew
    ? { type: "Warning", reason: "CannotManage", message }
    : undefined;
};

const suspended: NoticeRule = (before, after) =>
  after.phase === "Suspended" && before.phase !== "Suspended"
    ? { type: "Normal", reason: "Suspended", message: messageIn(after) }
    : undefined;

const rollingBack: NoticeRule = (before, after) =>
  isRollingBack(after) && !isRollingBack(before)
    ? { type: "Normal", reason: "RollingBack", message: messageIn(after) }
    : undefined;

const started: NoticeRule = (before, after) =>
  isRolling(after) && !isRollingBack(after) && !isRolling(before)
    ? { type: "Normal", reason: "RolloutStarted", message: messageIn(after) }
    : undefined;

const restarted: NoticeRule = (before, after) =>
  isRolling(after) && !isRollingBack(after) && isRolling(before) && before.updateRevision !== after.updateRevision
    ? { type: "Normal", reason: "RolloutRestarted", message: messageIn(after) }
    : undefined;

const completed: NoticeRule = (before, after) => {
  if (after.phase !== "Updated" || !isRolling(before)) return undefined;
  return isRollingBack(before) || before.updateRevision !== after.updateRevision
    ? { type: "Normal", reason: "RolledBack", message: messageIn(after) }
    : { type: "Normal", reason: "RolloutCompleted", message: messageIn(after) };
};

const stalled: NoticeRule = (before, after) =>
  after.phase === "Stalled" && before.phase !== "Stalled"
    ? { type: "Warning", reason: "RolloutStalled", message: messageIn(after) }
    : undefined;

/** The message may differ with each attempt. */
const unanswered: NoticeRule = (before, after) => {
  const isUnanswered = (status: PhasedStatus): boolean => findCondition(status, "ChecksHealthy")?.status === "False";
  if (!isUnanswered(after) || isUnanswered(before)) return undefined;
  return { type: "Warning", reason: "PrometheusError", message: messageIn(after, "ChecksHealthy") };
};

/** Objects of the original meant the opposite, and pass no webhook. */
const successWhenUnset: NoticeRule = (before, after, { statesSuccessWhen, check }) => {
  if (statesSuccessWhen || before.observedGeneration === after.observedGeneration) return undefined;
  const message = `spec.check.query.successWhen is not set: a check is successful if the query returns ${check.successWhen === "NoData" ? "no data" : "data"}`;
  return { type: "Warning", reason: "SuccessWhenUnset", message };
};

const RULES: readonly NoticeRule[] = [
  cannotManage,
  suspended,
  rollingBack,
  started,
  restarted,
  completed,
  stalled,
  unanswered,
  successWhenUnset,
];

/** The notices of a change from the stored status of `rollout` to `after`. */
export function noticesOf(rollout: PhasedRollout, after: PhasedStatus): Notice[] {
  return RULES.map((rule) => rule(rollout.status, after, rollout)).filter((notice) => notice !== undefined);
}
