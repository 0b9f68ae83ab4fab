/**
 * For each phase and step of a PhasedRollout that does not go on: the condition that must hold, and the smallest change
 * that helps. Pure.
 */
import { either, how, kubectl, zonewise } from "../../reconciler/model/remedy.ts";

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
