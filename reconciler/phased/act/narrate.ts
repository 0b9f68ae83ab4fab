/**
 * Reports the writes for PhasedRollouts: log lines and Events, each from the decision itself, and notices of a change of
 * the status, each once, as the status remembers it.
 */
import type { Log } from "../../../infra/log.ts";
import type { Hold } from "../../model/decision.ts";
import type { PhasedRollout } from "../phased-rollout.ts";
import type { Recorder } from "../../report/act/reporter.ts";
import type { Write } from "./take-phased-step.ts";
import { type PhasedStatus, findCondition } from "../status.ts";

interface Written {
  readonly decision: Write;
  readonly rollout: PhasedRollout;
  /** A budget forbade the write. */
  readonly hold: Hold | undefined;
}

interface Narrator extends Pick<Recorder, "emitEvents"> {
  readonly log: Log;
}

/** Called after each write. A hold lasts: its Event says it, and not a line each tick. */
export function narrate({ decision, rollout, hold }: Written, { emitEvents, log }: Narrator): void {
  const notices = hold
    ? [{ type: "Normal", reason: "StepHeld", message: hold.message } as const]
    : noticesOfWrite(decision, rollout);
  emitEvents(notices.map((notice) => ({ regarding: rollout, ...notice })));
  const text = hold?.message ?? describe(decision, rollout);
  const { namespace, name } = rollout;
  if (text !== undefined)
    log[hold ? "debug" : "info"](text, { namespace, phasedRollout: name, action: hold ? "hold" : decision.action });
}

function noticesOfWrite(decision: Write, rollout: PhasedRollout): Notice[] {
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

const isRolling = ({ phase }: PhasedStatus): boolean => phase === "Rolling" || phase === "Stalled";
const isBack = (status: PhasedStatus): boolean =>
  isRolling(status) && findCondition(status, "Updated")?.reason === "RollingBack";
const isForward = (status: PhasedStatus): boolean => isRolling(status) && !isBack(status);
const isUnanswered = (status: PhasedStatus): boolean => findCondition(status, "ChecksHealthy")?.status === "False";
const messageIn = (status: PhasedStatus, type = "Updated"): string => findCondition(status, type)?.message ?? "";

type IsNews = (before: PhasedStatus, after: PhasedStatus) => boolean;

const enters =
  (phase: string): IsNews =>
  (before, after) =>
    after.phase === phase && before.phase !== phase;

const ends =
  (wasBack: boolean): IsNews =>
  (before, after) =>
    after.phase === "Updated" &&
    isRolling(before) &&
    wasBack === (isBack(before) || before.updateRevision !== after.updateRevision);

interface News extends Omit<Notice, "message"> {
  readonly isNews: IsNews;
  /** The condition that has its message, unless it is `Updated`. */
  readonly condition?: string;
}

/** The changes between two statuses that get an Event. */
const NEWS: readonly News[] = [
  {
    type: "Warning",
    reason: "CannotManage",
    // Again when the cause changes within the phase.
    isNews: (before, after) =>
      after.phase === "ErrorCannotManage" && (before.phase !== after.phase || messageIn(before) !== messageIn(after)),
  },
  { type: "Normal", reason: "Suspended", isNews: enters("Suspended") },
  { type: "Normal", reason: "RollingBack", isNews: (before, after) => isBack(after) && !isBack(before) },
  { type: "Normal", reason: "RolloutStarted", isNews: (before, after) => isForward(after) && !isRolling(before) },
  {
    type: "Normal",
    reason: "RolloutRestarted",
    isNews: (before, after) => isForward(after) && isRolling(before) && before.updateRevision !== after.updateRevision,
  },
  { type: "Normal", reason: "RolledBack", isNews: ends(true) },
  { type: "Normal", reason: "RolloutCompleted", isNews: ends(false) },
  { type: "Warning", reason: "RolloutStalled", isNews: enters("Stalled") },
  {
    type: "Warning",
    reason: "PrometheusError",
    // Once: the message may differ with each attempt.
    isNews: (before, after) => isUnanswered(after) && !isUnanswered(before),
    condition: "ChecksHealthy",
  },
];

/** The notices of a change from the stored status of `rollout` to `after`. */
function noticesOf({ status: before, statesSuccessWhen, check }: PhasedRollout, after: PhasedStatus): Notice[] {
  const notices = NEWS.filter(({ isNews }) => isNews(before, after)).map(({ type, reason, condition }): Notice => ({
    type,
    reason,
    message: messageIn(after, condition),
  }));
  if (statesSuccessWhen || before.observedGeneration === after.observedGeneration) return notices;
  // Objects of the original meant the opposite, and pass no webhook.
  const message = `spec.check.query.successWhen is not set: a check is successful if the query returns ${check.successWhen === "NoData" ? "no data" : "data"}`;
  return [...notices, { type: "Warning", reason: "SuccessWhenUnset", message }];
}
