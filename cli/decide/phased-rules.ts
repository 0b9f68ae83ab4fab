/**
 * For each phase and step of a PhasedRollout that does not go on: the condition that must hold, and the smallest change
 * that helps. Pure.
 */

interface PhasedContext {
  readonly namespace: string;
  readonly name: string;
  readonly target: string;
}

interface PhasedFacts {
  readonly rule: string;
  readonly remedy: (context: PhasedContext) => string;
}

const kubectl = ({ namespace }: PhasedContext, command: string): string => `kubectl -n ${namespace} ${command}`;
const promote = ({ namespace, name }: PhasedContext): string => `zonewise -n ${namespace} promote ${name}`;
const lookAtPods = (context: PhasedContext): string => kubectl(context, "get pods");

export const PHASED_RULES = {
  Unseen: {
    rule: "what is recorded is of the PhasedRollout and the StatefulSet as they are",
    remedy: (context) =>
      `wait for the next tick; if it lasts, see if the reconciler runs: ${kubectl(context, "get cronjob,job")}`,
  },
  ErrorSTSNotFound: {
    rule: "the StatefulSet exists",
    remedy: (context) =>
      `create StatefulSet ${context.target}, or delete what asks for it: ${kubectl(context, `delete phasedrollout ${context.name}`)}`,
  },
  ErrorCannotManage: {
    rule: "the spec can be obeyed, the StatefulSet rolls by RollingUpdate, is in no group, and no other PhasedRollout manages it",
    remedy: (context) =>
      `correct what the message names, or ${kubectl(context, `delete phasedrollout ${context.name}`)}`,
  },
  WaitForPodToBeUpdated: {
    rule: "the pods from the partition on are at the new revision",
    remedy: (context) => `wait for the StatefulSet controller, or look: ${lookAtPods(context)}`,
  },
  WaitForAllPodsToBeAvailable: {
    rule: "every pod is ready before the next is released",
    remedy: (context) =>
      `wait for the pods; if they cannot start, revert the template of StatefulSet ${context.target}; or look: ${lookAtPods(context)}`,
  },
  WaitForInitialDelay: {
    rule: "the initial delay of the check is over",
    remedy: (context) => `wait, or skip the checks of this step: ${promote(context)}`,
  },
  WaitForChecks: {
    rule: "the check has had its good answers in a row",
    remedy: (context) => `wait, or skip the checks of this step: ${promote(context)}`,
  },
  PrometheusError: {
    rule: "Prometheus answers the check",
    remedy: (context) => `get Prometheus to answer, or skip the checks of this step: ${promote(context)}`,
  },
  Paused: {
    rule: "a paused rollout is left alone",
    remedy: (context) => kubectl(context, `annotate phasedrollout ${context.name} sts.plus/pause-`),
  },
  RollingBack: {
    rule: "the pods of a reverted template return before anything else",
    remedy: (context) => `wait for the pods; or look: ${lookAtPods(context)}`,
  },
  ChecksFailed: {
    rule: "the check has not failed too often in a row",
    remedy: (context) =>
      `revert the template of StatefulSet ${context.target}, or skip the checks of this step: ${promote(context)}`,
  },
  ProgressDeadlineExceeded: {
    rule: "a step takes no longer than progressDeadlineSeconds",
    remedy: (context) =>
      `nothing was undone and it goes on when it can; look: ${lookAtPods(context)}; or skip the checks of this step: ${promote(context)}`,
  },
} as const satisfies Readonly<Record<string, PhasedFacts>>;

export type PhasedReason = keyof typeof PHASED_RULES;
