/** Explains a StatefulSet, or one of its pods, by the records of its PhasedRollout. Pure. */
import { formatTimestamp } from "../../infra/timestamp.ts";
import { ordinalOf } from "../../reconciler/model/order.ts";
import { findCondition, type RollingPodStatus } from "../../reconciler/phased/status.ts";
import { nextCheckAt } from "../../reconciler/phased/step.ts";
import type { PhasedRollout } from "../../reconciler/phased/phased-rollout.ts";
import { firstReleased, type Target } from "../../reconciler/phased/target.ts";
import { either, how, kubectl, zonewise } from "../../reconciler/model/remedy.ts";
import { allow, explainDenial, type Blocker, type Explanation } from "./answer.ts";

/** A PhasedRollout, and its StatefulSet if that exists. */
export interface Phased {
  readonly rollout: PhasedRollout;
  readonly target: Target | undefined;
}

interface PhasedPod {
  readonly name: string;
  readonly revision: string | undefined;
}

const ROLL = "roll out";

/** True if the record was decided from both objects in their present state. */
export function isSeen({ rollout: { status, generation }, target }: Phased): boolean {
  if (status.observedGeneration !== generation) return false;
  // A target that is being deleted is recorded as missing.
  if (target?.terminating && status.targetUID === undefined) return true;
  return !target || (status.targetUID === target.uid && status.targetObservedGeneration === target.generation);
}

/** Answers whether the rollout of the StatefulSet may continue, with the recorded phase, partition, reason and next check. */
export function explainPhased(phased: Phased): Explanation {
  const { rollout } = phased;
  const { phase } = rollout.status;
  const message = messageOf(rollout);
  if (!isSeen(phased)) return explain(phased, "Unseen", "the reconciler has not seen the latest spec yet");
  if (phase === "ErrorSTSNotFound" || phase === "ErrorCannotManage") return explain(phased, phase, message);
  const step = rollout.status.rollingPodStatus;
  if ((phase === "Rolling" || phase === "Stalled") && step)
    return explain(phased, reasonOf(rollout, step), describeStep(phased, step));
  return allow(ROLL, message, phase);
}

/** The same for one of its pods: those from the partition on are released. */
export function explainPhasedPod(pod: PhasedPod, phased: Phased): Explanation {
  const { target } = phased;
  if (!target || pod.revision === target.status.updateRevision)
    return allow(ROLL, `${pod.name} is already updated`, "Nothing to do");
  const index = ordinalOf(pod) - target.firstOrdinal;
  const partition = firstReleased(target);
  if (index >= partition)
    return allow(
      ROLL,
      `${pod.name} is released: partition ${partition} of ${target.name} is not above it`,
      "Goes on by itself",
    );
  const own = explainPhased(phased);
  const before = partition - index - 1;
  const turn = before === 0 ? "it is the next" : `${before} pod${before > 1 ? "s go" : " goes"} before it`;
  const message = `${pod.name} is below partition ${partition} of ${target.name}, and ${turn}`;
  return own.allowed
    ? { ...own, message: `${message}; ${own.message}` }
    : { ...own, message: `${message}: ${own.message}` };
}

const messageOf = ({ status }: PhasedRollout): string =>
  (findCondition(status, "Updated") ?? findCondition(status, "Ready"))?.message ?? "";

/** The reason, from the closed list. A stall or a rollback comes before the state of the step. */
function reasonOf({ status }: PhasedRollout, step: RollingPodStatus): PhasedReason {
  const why = findCondition(status, "Updated")?.reason ?? "";
  if (isKnown(why)) return why;
  return isKnown(step.status) ? step.status : "WaitForPodToBeUpdated";
}

const isKnown = (reason: string): reason is PhasedReason => Object.hasOwn(PHASED_RULES, reason);

/** `partition 2 of 3: db-2 is released, db-1 is the next; 1 of 3 consecutive passes`. */
function describeStep({ rollout, target }: Phased, step: RollingPodStatus): string {
  const { partition } = step;
  const pod = (index: number): string => `${rollout.targetRef}-${(target?.firstOrdinal ?? 0) + index}`;
  const replicas = target?.replicas ?? partition;
  const released = partition >= replicas ? "no pod is released yet" : `${pod(partition)} is released`;
  const next = partition === 0 ? "it was the last" : `${pod(partition - 1)} is the next`;
  return [
    `partition ${partition} of ${replicas}: ${released}, ${next}`,
    ...describeChecks(rollout, step),
    messageOf(rollout),
  ].join("; ");
}

function describeChecks({ check }: PhasedRollout, step: RollingPodStatus): string[] {
  const { consecutiveSuccessfulChecks: good, consecutiveFailedChecks: bad, lastError, lastSample } = step;
  if (!CHECKING.has(step.status)) return [];
  return [
    `${good} of ${check.successThreshold} consecutive passes`,
    ...(bad > 0 ? [`${bad} consecutive failures, the last with ${lastSample ?? "no sample"}`] : []),
    ...(lastError === undefined ? [] : [lastError]),
  ];
}

const CHECKING: ReadonlySet<string> = new Set(["WaitForInitialDelay", "WaitForChecks", "PrometheusError"]);

/** When the next check is due, if one is. */
export function nextCheckOf(phased: Phased): string | undefined {
  const step = phased.rollout.status.rollingPodStatus;
  if (!step || !CHECKING.has(step.status)) return undefined;
  const at = nextCheckAt(phased, step);
  return Number.isFinite(at) ? formatTimestamp(at) : undefined;
}

function explain(phased: Phased, reason: PhasedReason, message: string): Explanation {
  const { rollout, target } = phased;
  const { namespace, name, targetRef, status } = rollout;
  const { rule, remedy } = PHASED_RULES[reason];
  const set: Blocker[] = target ? [{ kind: "StatefulSet", name: target.name }] : [];
  const step = status.rollingPodStatus;
  return explainDenial({
    question: ROLL,
    reason,
    rule,
    message,
    objects: [{ kind: "PhasedRollout", name }, ...set],
    since: step?.stepStartTime ?? findCondition(status, "Ready")?.lastTransitionTime,
    until: reason === "Unseen" ? undefined : nextCheckOf(phased),
    remedy: remedy({ namespace, name, target: targetRef }),
  });
}

interface PhasedContext {
  readonly namespace: string;
  readonly name: string;
  readonly target: string;
}

interface PhasedFacts {
  readonly rule: string;
  readonly remedy: (context: PhasedContext) => string;
}

const promote = (context: PhasedContext): string =>
  how("skip the checks of this step", zonewise(context, `promote ${context.name}`));
const lookAtPods = (context: PhasedContext): string => how("look at the pods", kubectl(context, "get pods"));
const waitForPods = (context: PhasedContext): string => either("wait for the pods", lookAtPods(context));
const waitOrPromote = (context: PhasedContext): string => either("wait", promote(context));
const revert = ({ target }: PhasedContext): string => `revert the template of StatefulSet ${target}`;

/**
 * For each phase and step that does not go on: the condition that must hold, and the smallest change that helps.
 */
export const PHASED_RULES = {
  Unseen: {
    rule: "the reconciler has seen the latest spec of the PhasedRollout and of the StatefulSet",
    remedy: (context) =>
      how("wait for the next tick; if none comes, see if the reconciler runs", kubectl(context, "get cronjob,job")),
  },
  ErrorSTSNotFound: {
    rule: "the StatefulSet exists",
    remedy: (context) =>
      either(
        `create StatefulSet ${context.target}`,
        how("delete the PhasedRollout", kubectl(context, `delete phasedrollout ${context.name}`)),
      ),
  },
  ErrorCannotManage: {
    rule: "the spec can be obeyed, the StatefulSet rolls by RollingUpdate, is in no group, and no other PhasedRollout manages it",
    remedy: (context) =>
      either(
        "correct what the message names",
        how("delete the PhasedRollout", kubectl(context, `delete phasedrollout ${context.name}`)),
      ),
  },
  WaitForPodToBeUpdated: {
    rule: "the pods from the partition on are at the new revision",
    remedy: (context) => either("wait for the StatefulSet controller", lookAtPods(context)),
  },
  WaitForAllPodsToBeAvailable: {
    rule: "every pod is ready before the next is released",
    remedy: (context) => either(`wait for the pods; if they cannot start, ${revert(context)}`, lookAtPods(context)),
  },
  WaitForInitialDelay: {
    rule: "the initial delay of the check is over",
    remedy: waitOrPromote,
  },
  WaitForChecks: {
    rule: "the check has passed often enough in a row",
    remedy: waitOrPromote,
  },
  PrometheusError: {
    rule: "Prometheus answers the check",
    remedy: (context) => either("make Prometheus answer", promote(context)),
  },
  Paused: {
    rule: "no pod of a paused rollout is replaced",
    remedy: (context) => kubectl(context, `annotate phasedrollout ${context.name} sts.plus/pause-`),
  },
  RollingBack: {
    rule: "the pods of a reverted template are recreated first",
    remedy: waitForPods,
  },
  ChecksFailed: {
    rule: "the check has not failed too often in a row",
    remedy: (context) => either(revert(context), promote(context)),
  },
  ProgressDeadlineExceeded: {
    rule: "a step takes no longer than progressDeadlineSeconds",
    remedy: (context) =>
      either("wait: nothing was undone, and it continues when it can", lookAtPods(context), promote(context)),
  },
} as const satisfies Readonly<Record<string, PhasedFacts>>;

export type PhasedReason = keyof typeof PHASED_RULES;
