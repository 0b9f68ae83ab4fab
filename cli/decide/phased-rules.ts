/** For each phase and step of a PhasedRollout that does not go on: what must hold, and the smallest change that helps. Pure. */

export interface PhasedTold {
  readonly namespace: string;
  readonly name: string;
  readonly target: string;
  /** `<updateRevision>/<partition>`. */
  readonly step: string;
}

interface PhasedFacts {
  readonly rule: string;
  readonly remedy: (told: PhasedTold) => string;
}

const kubectl = ({ namespace }: PhasedTold, command: string): string => `kubectl -n ${namespace} ${command}`;
const promote = (told: PhasedTold): string =>
  kubectl(told, `annotate --overwrite phasedrollout ${told.name} sts.plus/promote-step=${told.step}`);
const lookAtPods = (told: PhasedTold): string => kubectl(told, "get pods");

export const PHASED_RULES = {
  Unseen: {
    rule: "what is recorded is of the PhasedRollout and the StatefulSet as they are",
    remedy: (told) => `wait for the next tick; if it lasts, see if the reconciler runs: ${kubectl(told, "get cronjob,job")}`,
  },
  ErrorSTSNotFound: {
    rule: "the StatefulSet exists",
    remedy: (told) =>
      `create StatefulSet ${told.target}, or delete what asks for it: ${kubectl(told, `delete phasedrollout ${told.name}`)}`,
  },
  ErrorCannotManage: {
    rule: "the StatefulSet rolls by RollingUpdate, is in no group, and no other PhasedRollout manages it",
    remedy: (told) => `correct what the message names, or ${kubectl(told, `delete phasedrollout ${told.name}`)}`,
  },
  WaitForPodToBeUpdated: {
    rule: "the pods from the partition on are at the new revision",
    remedy: (told) => `wait for the StatefulSet controller, or look: ${lookAtPods(told)}`,
  },
  WaitForAllPodsToBeAvailable: {
    rule: "every pod is ready before the next is released",
    remedy: (told) =>
      `wait for the pods; if they cannot start, revert the template of StatefulSet ${told.target}; or look: ${lookAtPods(told)}`,
  },
  WaitForInitialDelay: {
    rule: "the initial delay of the check is over",
    remedy: (told) => `wait, or skip the checks of this step: ${promote(told)}`,
  },
  WaitForChecks: {
    rule: "the check has had its good answers in a row",
    remedy: (told) => `wait, or skip the checks of this step: ${promote(told)}`,
  },
  PrometheusError: {
    rule: "Prometheus answers the check",
    remedy: (told) => `get Prometheus to answer, or skip the checks of this step: ${promote(told)}`,
  },
  Paused: {
    rule: "a paused rollout is left alone",
    remedy: (told) => kubectl(told, `annotate phasedrollout ${told.name} sts.plus/pause-`),
  },
  RollingBack: {
    rule: "the pods of a reverted template return before anything else",
    remedy: (told) => `wait for the pods; or look: ${lookAtPods(told)}`,
  },
  ChecksFailed: {
    rule: "the check has not failed too often in a row",
    remedy: (told) => `revert the template of StatefulSet ${told.target}, or skip the checks of this step: ${promote(told)}`,
  },
  ProgressDeadlineExceeded: {
    rule: "a step takes no longer than progressDeadlineSeconds",
    remedy: (told) =>
      `nothing was undone and it goes on when it can; look: ${lookAtPods(told)}; or skip the checks of this step: ${promote(told)}`,
  },
} as const satisfies Readonly<Record<string, PhasedFacts>>;

export type PhasedReason = keyof typeof PHASED_RULES;
