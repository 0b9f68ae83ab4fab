/**
 * Reports the writes for PhasedRollouts: log lines and Events, each from the decision itself, and notices of a change of
 * the status, each once, as the status remembers it.
 */
import { isSameJson } from "../../../infra/json.ts";
import type { Log } from "../../../infra/log.ts";
import type { Hold } from "../../model/decision.ts";
import type { PhasedRollout } from "../phased-rollout.ts";
import type { Recorder } from "../../report/act/recorder.ts";
import type { GatheredRollout } from "./gather-rollouts.ts";
import type { Write } from "./take-phased-step.ts";
import { type PhasedStatus, findCondition } from "../status.ts";

interface Written {
  readonly decision: Write;
  readonly gathered: GatheredRollout;
  /** A budget forbade the write. */
  readonly hold: Hold | undefined;
}

/** Called after each write. A hold lasts: its Event says it, and not a line each tick. */
export function narrate(
  { decision, gathered, hold }: Written,
  { emitEvents, log }: Pick<Recorder, "emitEvents"> & { readonly log: Log },
): void {
  const { rollout } = gathered;
  const notices = hold ? [heldBack(hold)] : noticesOfWrite(decision, gathered);
  emitEvents(notices.map((notice) => ({ regarding: rollout, ...notice })));
  const text = hold?.message ?? describe(decision, rollout);
  const { namespace, name } = rollout;
  if (text !== undefined)
    log[hold ? "debug" : "info"](text, { namespace, phasedRollout: name, action: hold ? "hold" : decision.action });
}

const heldBack = ({ message }: Hold): Notice => ({ type: "Normal", reason: "StepHeld", message });

function noticesOfWrite(decision: Write, { rollout }: GatheredRollout): Notice[] {
  if (decision.action === "report") return noticesOf(rollout, decision.status);
  if (decision.action === "releaseTarget") return [describeRelease(decision, rollout.targetRef)];
  if (decision.action === "replacePod")
    return [{ type: "Normal", reason: "BrokenPodReplaced", message: decision.message }];
  if (decision.action !== "setPartition") return [];
  if (decision.reason === "Contain") return [{ type: "Warning", reason: "PartitionRaised", message: decision.message }];
  return decision.reason === "Suspend" ? [{ type: "Normal", reason: "Released", message: decision.message }] : [];
}

function describeRelease(
  { partition, pods, frozen }: Extract<Write, { action: "releaseTarget" }>,
  target: string,
): Notice {
  if (frozen)
    return {
      type: "Warning",
      reason: "Frozen",
      message: `StatefulSet ${target} keeps its partition, and nothing rolls it out now`,
    };
  const released = pods === 0 ? "" : `; ${pods} pods are released without checks`;
  return {
    type: "Normal",
    reason: "Released",
    message: `StatefulSet ${target} has partition ${partition ?? "unset"} again${released}`,
  };
}

/** The log line of a decision; none for a status that stays. */
function describe(decision: Write, rollout: PhasedRollout): string | undefined {
  switch (decision.action) {
    case "report":
      return describeStatus(decision, rollout);
    case "setPartition":
      return `partition ${decision.partition}: ${decision.message}`;
    case "releasePod":
      return `all checks have passed: partition ${decision.partition}${decision.pod ? ` releases ${decision.pod.name}` : ""}`;
    case "replacePod":
      return decision.message;
    case "releaseTarget":
      return describeRelease(decision, rollout.targetRef).message;
    case "claim":
      return `StatefulSet ${rollout.targetRef} is claimed`;
    case "addFinalizer":
    case "dropFinalizer":
      return undefined;
    default:
      return decision satisfies never;
  }
}

/** Counters change with every check: only phase, step and reason are worth a line. */
function describeStatus({ status }: Extract<Write, { action: "report" }>, rollout: PhasedRollout): string | undefined {
  const { status: before } = rollout;
  if (isSameJson(before, status)) return undefined;
  const outline = ({ phase, rollingPodStatus: step, conditions }: typeof status): string =>
    [
      phase,
      step && `${step.status} at partition ${step.partition}`,
      conditions.find(({ type }) => type === "Updated")?.message,
    ]
      .filter((part) => part !== undefined)
      .join(": ");
  return outline(before) === outline(status) ? undefined : outline(status);
}

interface Notice {
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
function noticesOf(rollout: PhasedRollout, after: PhasedStatus): Notice[] {
  return RULES.map((rule) => rule(rollout.status, after, rollout)).filter((notice) => notice !== undefined);
}
