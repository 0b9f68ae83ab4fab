/** The next write for one PhasedRollout (§16): tables of situations. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decidePhased } from "../../../reconciler/phased/decide.ts";
import type { PhasedDecision } from "../../../reconciler/phased/snapshot.ts";
import { readPhasedRollout } from "../../../reconciler/phased/phased-rollout.ts";
import { hashOf } from "../../../reconciler/phased/step.ts";
import { ago, data, empty, NEW, NOW, OLD, rolling, rolloutObject, type Scene, snapshot, unreachable } from "./builders.ts";

/** The decision in a few words: what is written, or the reported phase, `Ready`, `Updated` and step. */
function summarize(decision: PhasedDecision): string {
  switch (decision.action) {
    case "setPartition":
      return `partition ${decision.partition} ${decision.reason}`;
    case "releasePod":
      return `release ${decision.pod?.name ?? "nothing"} by partition ${decision.partition}`;
    case "replacePod":
      return `replace ${decision.pod.name}`;
    case "releaseTarget":
      return `give back with partition ${decision.partition ?? "kept"}, ${decision.pods} pods`;
    case "claim":
      return `claim${decision.from === undefined ? "" : ` from ${decision.from}`}`;
    case "report":
      return describeStatus(decision);
    case "addFinalizer":
    case "dropFinalizer":
    case "check":
      return decision.action;
    default:
      return decision satisfies never;
  }
}

function describeStatus({ status, dueAt }: Extract<PhasedDecision, { action: "report" }>): string {
  const { phase, rollingPodStatus: step, conditions } = status;
  const [ready, updated, checks] = conditions;
  const of = step ? ` ${step.status}@${step.partition} ${step.consecutiveSuccessfulChecks}/${step.consecutiveFailedChecks}` : "";
  const due = dueAt === undefined ? "" : ` due in ${Math.round((dueAt - NOW) / 1000)} s`;
  const health = checks ? ` checks ${checks.status}` : "";
  return `${phase}${ready ? ` ${ready.status}/${ready.reason} ${updated?.status}/${updated?.reason}` : ""}${of}${health}${due}`;
}

export const decideIn = (scene: Scene): string => summarize(decidePhased(snapshot(scene)));

const NEWER = { current: OLD, update: NEW };
const READY = "True/Ready False/Rolling";

interface Row extends Scene {
  readonly name: string;
  readonly expected: string;
}

function table(title: string, rows: readonly Row[]): void {
  describe(title, () => {
    for (const { name, expected, ...scene } of rows) it(name, () => assert.equal(decideIn(scene), expected));
  });
}

/** A step at which all pods are available and the delay is over. */
const checking = (partition: number, more: object = {}): object =>
  rolling(partition, { status: "WaitForChecks", analisysStartTime: ago(61), ...more });

table("the original's cases", [
  { name: "no such StatefulSet", set: null, expected: "ErrorSTSNotFound False/ErrorSTSNotFound Unknown/ErrorSTSNotFound" },
  {
    name: "a StatefulSet with OnDelete",
    set: { strategy: "OnDelete" },
    expected: "ErrorCannotManage False/ErrorCannotManage Unknown/ErrorCannotManage",
  },
  { name: "a StatefulSet of nobody: first the finalizer", set: { owner: undefined }, finalizers: [], expected: "addFinalizer" },
  { name: "a StatefulSet of nobody: then the claim", set: { owner: undefined }, expected: "claim" },
  { name: "a StatefulSet of a PhasedRollout that is gone", set: { owner: "gone" }, expected: "claim from gone" },
  {
    name: "a StatefulSet of a PhasedRollout with another target",
    set: { owner: "other" },
    other: { name: "other", spec: { targetRef: "cache" } },
    expected: "claim from other",
  },
  {
    name: "a StatefulSet of another PhasedRollout",
    set: { owner: "other" },
    other: { name: "other" },
    finalizers: [],
    expected: "ErrorCannotManage False/ErrorCannotManage Unknown/ErrorCannotManage",
  },
  { name: "an idle StatefulSet with all pods free to roll", set: { partition: 0 }, expected: "partition 3 Guard" },
  { name: "an idle StatefulSet without a partition", set: { partition: undefined }, expected: "partition 3 Guard" },
  { name: "an idle StatefulSet with its guard", expected: "Updated True/Ready True/Updated" },
  { name: "suspended: the partition goes first", spec: { standardRollingUpdate: true }, expected: "partition 0 Suspend" },
  {
    name: "suspended without a partition",
    spec: { skipCheck: true },
    set: { partition: undefined },
    expected: "Suspended True/Suspended Unknown/Suspended",
  },
  { name: "deleted: the StatefulSet is given back", terminating: true, expected: "give back with partition 0, 0 pods" },
  { name: "deleted, given back", terminating: true, set: { owner: undefined }, expected: "dropFinalizer" },
  { name: "deleted without its StatefulSet", terminating: true, set: null, expected: "dropFinalizer" },
  {
    name: "a new revision",
    set: NEWER,
    status: { phase: "Updated", updateRevision: OLD, targetUID: "uid-db" },
    expected: `Rolling ${READY} WaitForPodToBeUpdated@3 0/0 due in 0 s`,
  },
  {
    name: "the first step: all pods are available",
    set: NEWER,
    status: rolling(3),
    expected: `Rolling ${READY} WaitForInitialDelay@3 0/0 due in 60 s`,
  },
  {
    name: "during the initial delay",
    set: NEWER,
    status: rolling(3, { status: "WaitForInitialDelay", analisysStartTime: ago(20) }),
    expected: `Rolling ${READY} WaitForInitialDelay@3 0/0 due in 40 s`,
  },
  { name: "after the initial delay", set: NEWER, status: checking(3), expected: "check" },
  {
    name: "a Secret that is missing",
    set: NEWER,
    status: checking(3),
    answer: { kind: "Error", code: "SecretUnusable", message: "there is no Secret" },
    expected: `Rolling ${READY} PrometheusError@3 0/0 checks False due in 5 s`,
  },
  {
    name: "the Secret is there",
    set: NEWER,
    status: checking(3, { status: "PrometheusError", consecutiveErrors: 1, lastError: "SecretUnusable", lastAttemptTime: ago(5) }),
    answer: empty,
    expected: `Rolling ${READY} WaitForChecks@3 1/0 checks True due in 60 s`,
  },
  {
    name: "the last success is written down before the pod is released",
    set: NEWER,
    status: checking(3, { consecutiveSuccessfulChecks: 2, lastAttemptTime: ago(60), lastCheckTime: ago(60) }),
    answer: empty,
    expected: `Rolling ${READY} WaitForChecks@3 3/0 checks True due in 0 s`,
  },
  {
    name: "all checks have passed",
    set: NEWER,
    status: checking(3, { consecutiveSuccessfulChecks: 3, lastAttemptTime: ago(1), lastCheckTime: ago(1) }),
    expected: "release db-2 by partition 2",
  },
  {
    name: "the next step begins",
    set: { ...NEWER, partition: 2 },
    status: checking(3, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }),
    expected: `Rolling ${READY} WaitForPodToBeUpdated@2 0/0 due in 0 s`,
  },
  {
    name: "its pod is not updated yet",
    set: { ...NEWER, partition: 2 },
    pods: "ooo-",
    status: rolling(2),
    expected: `Rolling ${READY} WaitForPodToBeUpdated@2 0/0`,
  },
  {
    name: "its pod is updated and not ready",
    set: { ...NEWER, partition: 2, available: 2, updated: 1 },
    pods: "oon!",
    status: rolling(2),
    expected: `Rolling ${READY} WaitForAllPodsToBeAvailable@2 0/0`,
  },
  {
    name: "its pod is ready",
    set: { ...NEWER, partition: 2, updated: 1 },
    pods: "oon",
    status: rolling(2),
    expected: `Rolling ${READY} WaitForInitialDelay@2 0/0 due in 60 s`,
  },
  {
    name: "Prometheus answers an error",
    set: NEWER,
    status: checking(3, { consecutiveSuccessfulChecks: 2, lastAttemptTime: ago(60), lastCheckTime: ago(60) }),
    answer: unreachable,
    expected: `Rolling ${READY} PrometheusError@3 0/0 checks False due in 5 s`,
  },
  {
    name: "data means that the check has failed, unless users say otherwise",
    set: NEWER,
    status: checking(3, { consecutiveSuccessfulChecks: 2, lastAttemptTime: ago(60) }),
    answer: data,
    expected: `Rolling ${READY} WaitForChecks@3 0/1 checks True due in 60 s`,
  },
  {
    name: "with successWhen Data, data is a success",
    set: NEWER,
    query: { successWhen: "Data" },
    status: checking(3),
    answer: data,
    expected: `Rolling ${READY} WaitForChecks@3 1/0 checks True due in 60 s`,
  },
  {
    name: "with successWhen Data, no data is a failure",
    set: NEWER,
    query: { successWhen: "Data" },
    status: checking(3),
    answer: empty,
    expected: `Rolling ${READY} WaitForChecks@3 0/1 checks True due in 60 s`,
  },
  {
    name: "an empty answer with warnings is no success",
    set: NEWER,
    status: checking(3),
    answer: { ...empty, warnings: ["a store is missing"] } as typeof empty,
    expected: `Rolling ${READY} PrometheusError@3 0/0 checks False due in 5 s`,
  },
  {
    name: "the last step releases pod 0",
    set: { ...NEWER, partition: 1, updated: 2 },
    pods: "onn",
    status: checking(1, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }),
    expected: "release db-0 by partition 0",
  },
  {
    name: "partition 0, pod 0 is being replaced",
    set: { ...NEWER, partition: 0, updated: 2, available: 2 },
    pods: "o-nn",
    status: checking(1, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }),
    expected: `Rolling ${READY} WaitForPodToBeUpdated@0 0/0 due in 0 s`,
  },
  {
    name: "partition 0, the rest is the StatefulSet controller's",
    set: { ...NEWER, partition: 0, updated: 3 },
    pods: "nnn",
    status: rolling(0),
    expected: `Rolling ${READY} WaitForAllPodsToBeAvailable@0 0/0`,
  },
  {
    name: "the rollout is over: first the guard",
    set: { current: NEW, update: NEW, partition: 0 },
    pods: "nnn",
    status: rolling(0),
    expected: "partition 3 Guard",
  },
  {
    name: "the rollout is over",
    set: { current: NEW, update: NEW },
    pods: "nnn",
    status: rolling(0),
    expected: "Updated True/Ready True/Updated",
  },
]);

const stepped = (partition: number): object => checking(partition, { consecutiveSuccessfulChecks: 1, lastAttemptTime: ago(30) });
const SUSPENDED = { phase: "Suspended", targetUID: "uid-db", updateRevision: NEW };
const CANNOT = { phase: "ErrorCannotManage", targetUID: "uid-db", updateRevision: NEW };

table("what becomes of the partition", [
  { name: "adoption while idle", set: { partition: 0, owner: undefined }, expected: "claim" },
  {
    name: "adoption in the middle of a rollout keeps the pods that are not updated",
    set: { ...NEWER, partition: 0, updated: 1 },
    pods: "oon",
    expected: "partition 2 Contain",
  },
  { name: "idle, scaled up", set: { replicas: 5, partition: 3 }, expected: "partition 5 Guard" },
  { name: "idle, scaled down", set: { replicas: 2, partition: 3 }, expected: "partition 2 Shrink" },
  {
    name: "a template and more replicas in one write, without the admission policy: everything begins above all pods",
    set: { ...NEWER, replicas: 5, partition: 3 },
    pods: "ooonn",
    status: { phase: "Updated", updateRevision: OLD, targetUID: "uid-db" },
    expected: "partition 5 Restart",
  },
  {
    name: "scaled up in the middle: all pods are waited for",
    set: { ...NEWER, replicas: 4, partition: 2, available: 3, updated: 1 },
    pods: "oon.",
    status: stepped(2),
    expected: `Rolling ${READY} WaitForPodToBeUpdated@2 0/0`,
  },
  {
    name: "scaled down below the partition: no step waits for pods that are gone",
    set: { ...NEWER, replicas: 2, partition: 3 },
    pods: "oo",
    status: stepped(3),
    expected: "partition 2 Shrink",
  },
  {
    name: "scaled down above the partition",
    set: { ...NEWER, replicas: 2, partition: 1, updated: 1 },
    pods: "on",
    status: rolling(1),
    expected: `Rolling ${READY} WaitForInitialDelay@1 0/0 due in 60 s`,
  },
  {
    name: "scaled to 0",
    set: { replicas: 0, partition: 2, current: NEW, update: NEW },
    pods: "",
    status: rolling(2),
    expected: "partition 0 Shrink",
  },
  {
    name: "scaled to 0, then",
    set: { replicas: 0, partition: 0, current: NEW, update: NEW },
    pods: "",
    status: rolling(2),
    expected: "Updated True/Ready True/Updated",
  },
  {
    name: "somebody lowers the partition",
    set: { ...NEWER, partition: 1, updated: 1 },
    pods: "oon",
    status: stepped(2),
    expected: `Rolling ${READY} WaitForPodToBeUpdated@1 0/0 due in 0 s`,
  },
  {
    name: "somebody removes the partition in the middle",
    set: { ...NEWER, partition: undefined, updated: 1 },
    pods: "oon",
    status: stepped(2),
    expected: "partition 2 Contain",
  },
  { name: "somebody changes the partition while idle", set: { partition: 1 }, expected: "partition 3 Guard" },
  {
    name: "a third template",
    set: { current: OLD, update: "db-third", partition: 1, updated: 0 },
    pods: "onn",
    status: rolling(1),
    expected: "partition 3 Restart",
  },
  {
    name: "a third template, then the rollout begins again",
    set: { current: OLD, update: "db-third", partition: 3, updated: 0 },
    pods: "onn",
    status: rolling(1),
    expected: `Rolling ${READY} WaitForPodToBeUpdated@3 0/0 due in 0 s`,
  },
  {
    name: "reverted in the middle: first the status",
    set: { partition: 1 },
    pods: "onn",
    status: rolling(1),
    expected: "Rolling True/Ready False/RollingBack due in 0 s",
  },
  {
    name: "reverted in the middle, partition raised by the admission policy: down to the last stale pod",
    set: { partition: 3 },
    pods: "onn",
    status: rolling(1, {}, { updateRevision: OLD, rollingPodStatus: undefined, conditions: [backing("Updated")] }),
    expected: "partition 2 RollBack",
  },
  {
    name: "suspended in the middle",
    set: { ...NEWER, partition: 2 },
    spec: { skipCheck: true },
    status: rolling(2),
    expected: "partition 0 Suspend",
  },
  {
    name: "no longer suspended in the middle",
    set: { ...NEWER, partition: 0, updated: 1 },
    pods: "oon",
    status: SUSPENDED,
    expected: "partition 2 Contain",
  },
  {
    name: "no longer suspended, all pods updated",
    set: { current: NEW, update: NEW, partition: 0 },
    pods: "nnn",
    status: SUSPENDED,
    expected: "partition 3 Guard",
  },
  {
    name: "OnDelete and back in the middle",
    set: { ...NEWER, partition: 0, updated: 1 },
    pods: "oon",
    status: CANNOT,
    expected: "partition 2 Contain",
  },
  {
    name: "the StatefulSet was recreated by another one: the stored step counts for nothing",
    set: { ...NEWER, uid: "uid-2", partition: 2, updated: 1 },
    pods: "oon",
    status: checking(2, { consecutiveSuccessfulChecks: 3 }),
    expected: `Rolling ${READY} WaitForPodToBeUpdated@2 0/0 due in 0 s`,
  },
  {
    name: "deleted in the middle: the original partition returns, and with it the pods",
    terminating: true,
    set: { ...NEWER, partition: 2, updated: 1, annotations: { "sts.plus/original-partition": "1" } },
    pods: "oon",
    expected: "give back with partition 1, 1 pods",
  },
  {
    name: "deleted in the middle with onDelete: freeze",
    terminating: true,
    spec: { onDelete: "freeze" },
    set: { ...NEWER, partition: 2 },
    pods: "oon",
    expected: "give back with partition kept, 0 pods",
  },
]);

function backing(type: string): object {
  return { type, status: "False", reason: "RollingBack", message: "m", lastTransitionTime: ago(5) };
}

const ROLLED_BACK = { phase: "Rolling", targetUID: "uid-db", updateRevision: OLD, conditions: [backing("Updated")] };

table("better than the original", [
  {
    name: "S01 a revert is not complete while pods of the reverted revision are left",
    set: { partition: 2 },
    pods: "o.n",
    status: ROLLED_BACK,
    expected: "Rolling True/Ready False/RollingBack",
  },
  {
    name: "S01 a revert that finds several pods released keeps all but the last",
    set: { partition: 1 },
    pods: "onn",
    status: ROLLED_BACK,
    expected: "partition 2 RollBack",
  },
  {
    name: "S01 also while that one is terminating",
    set: { partition: 1 },
    pods: "onn-",
    status: ROLLED_BACK,
    expected: "partition 2 RollBack",
  },
  {
    name: "S01 the next pod of a reverted template is released once the last one is replaced",
    set: { partition: 2 },
    pods: "ono",
    status: ROLLED_BACK,
    expected: "partition 1 RollBack",
  },
  {
    name: "S01 not while the last one is terminating",
    set: { partition: 3 },
    pods: "onn-",
    status: ROLLED_BACK,
    expected: "Rolling True/Ready False/RollingBack",
  },
  {
    name: "S01 nor while OrderedReady waits for a pod: it would replace none",
    set: { partition: 2 },
    pods: "ono!",
    status: ROLLED_BACK,
    expected: "Rolling True/Ready False/RollingBack",
  },
  {
    name: "S01 under Parallel it is released at once, for the budget to decide",
    set: { partition: 2, policy: "Parallel" },
    pods: "ono!",
    status: ROLLED_BACK,
    expected: "partition 1 RollBack",
  },
  {
    name: "S01 under Parallel a pod of a reverted template that is not ready goes first",
    set: { partition: 3, policy: "Parallel" },
    pods: "on!n",
    status: ROLLED_BACK,
    expected: "replace db-1",
  },
  {
    name: "S01 under OrderedReady a pod that is merely not ready is left alone",
    set: { partition: 3 },
    pods: "on!n",
    status: ROLLED_BACK,
    expected: "Rolling True/Ready False/RollingBack",
  },
  {
    name: "S01 a revert is complete once they are gone",
    set: { partition: 1 },
    pods: "ooo",
    status: ROLLED_BACK,
    expected: "partition 3 Guard",
  },
  {
    name: "S01 nothing is complete before the controller has observed the spec",
    set: { observed: false },
    status: { phase: "Updated" },
    expected: "Updated True/Ready Unknown/StatusNotObserved",
  },
  {
    name: "S01 a broken pod of neither revision is replaced, however the policy orders pods",
    set: { available: 2 },
    pods: "ooX",
    status: ROLLED_BACK,
    expected: "replace db-2",
  },
  {
    name: "S01 after a third template, too",
    set: { current: OLD, update: "db-third", available: 2 },
    pods: "ooN",
    status: rolling(2),
    expected: "replace db-2",
  },
  {
    name: "S01 a broken pod of the new revision is left to its user",
    set: { ...NEWER, partition: 2, available: 2, updated: 1 },
    pods: "ooN",
    status: rolling(2),
    expected: `Rolling ${READY} WaitForAllPodsToBeAvailable@2 0/0`,
  },
  {
    name: "S01 a pod of neither revision that works is left alone",
    set: { ...NEWER, partition: 2 },
    pods: "oox",
    status: rolling(2),
    expected: `Rolling ${READY} WaitForPodToBeUpdated@2 0/0`,
  },
  {
    name: "S02 an unexplained partition of 0 is raised",
    set: { ...NEWER, partition: 0, updated: 0 },
    pods: "ooo",
    status: rolling(2),
    expected: "partition 3 Contain",
  },
  {
    name: "S02 even one step away, unless the checks have passed",
    set: { ...NEWER, partition: 0, updated: 2 },
    pods: "onn",
    status: checking(1, { consecutiveSuccessfulChecks: 2 }),
    expected: "partition 1 Contain",
  },
  {
    name: "S04 a deleted PhasedRollout whose finalizer is gone gives back, and claims nothing",
    terminating: true,
    finalizers: ["foregroundDeletion"],
    expected: "give back with partition 0, 0 pods",
  },
  {
    name: "S04 and then it does nothing",
    terminating: true,
    finalizers: ["foregroundDeletion"],
    set: { owner: undefined },
    status: { phase: "Updated" },
    expected: "Updated",
  },
  {
    name: "S05 a pod that is lost during the initial delay begins the step again",
    set: { ...NEWER, available: 2 },
    pods: "oo!o",
    status: rolling(3, { status: "WaitForInitialDelay", analisysStartTime: ago(20) }),
    expected: `Rolling ${READY} WaitForAllPodsToBeAvailable@3 0/0`,
  },
  {
    name: "S05 a pod that is lost after the last success, too",
    set: { ...NEWER, available: 2 },
    pods: "oo!o",
    status: checking(3, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }),
    expected: `Rolling ${READY} WaitForAllPodsToBeAvailable@3 0/0`,
  },
  {
    name: "S05 a status that counts fewer pods than there are is believed",
    set: { ...NEWER, available: 2 },
    status: checking(3),
    expected: `Rolling ${READY} WaitForAllPodsToBeAvailable@3 0/0`,
  },
  {
    name: "S05 a pod that the status still counts, but is terminating, is not there",
    set: NEWER,
    pods: "oo-o",
    status: checking(3),
    expected: `Rolling ${READY} WaitForAllPodsToBeAvailable@3 0/0`,
  },
  {
    name: "S06 an error breaks the row of successes, and the next check comes soon",
    set: NEWER,
    status: checking(3, { consecutiveSuccessfulChecks: 2, lastAttemptTime: ago(60) }),
    answer: unreachable,
    expected: `Rolling ${READY} PrometheusError@3 0/0 checks False due in 5 s`,
  },
  {
    name: "S06 after the third error in a row, later",
    set: NEWER,
    status: checking(3, { consecutiveErrors: 2, lastAttemptTime: ago(60) }),
    answer: unreachable,
    expected: `Rolling ${READY} PrometheusError@3 0/0 checks False due in 20 s`,
  },
  {
    name: "S06 never later than the period",
    set: NEWER,
    status: checking(3, { consecutiveErrors: 9, lastAttemptTime: ago(60) }),
    answer: unreachable,
    expected: `Rolling ${READY} PrometheusError@3 0/0 checks False due in 60 s`,
  },
  {
    name: "S07 without a limit, failed checks hold the rollout for ever",
    set: NEWER,
    status: checking(3, { consecutiveFailedChecks: 99, lastAttemptTime: ago(60) }),
    answer: data,
    expected: `Rolling ${READY} WaitForChecks@3 0/100 checks True due in 60 s`,
  },
  {
    name: "S07 with failureThreshold the rollout stalls",
    set: NEWER,
    check: { failureThreshold: 2 },
    status: checking(3, { consecutiveFailedChecks: 2, lastAttemptTime: ago(99) }),
    expected: "Stalled True/Ready False/ChecksFailed WaitForChecks@3 0/2 checks True",
  },
  {
    name: "S07 after progressDeadlineSeconds it is stalled and goes on",
    set: NEWER,
    spec: { progressDeadlineSeconds: 100 },
    status: checking(3, { lastAttemptTime: ago(60) }),
    answer: empty,
    expected: "Stalled True/Ready False/ProgressDeadlineExceeded WaitForChecks@3 1/0 checks True due in 60 s",
  },
  {
    name: "S07 before the deadline the next look is not later than it",
    set: NEWER,
    spec: { progressDeadlineSeconds: 310 },
    status: checking(3, { lastAttemptTime: ago(1) }),
    expected: `Rolling ${READY} WaitForChecks@3 0/0 checks True due in 10 s`,
  },
  {
    name: "S07 the last pod has a deadline, too",
    set: { ...NEWER, partition: 0, available: 2, updated: 3 },
    pods: "n!nn",
    spec: { progressDeadlineSeconds: 100 },
    status: rolling(0),
    expected: "Stalled True/Ready False/ProgressDeadlineExceeded WaitForAllPodsToBeAvailable@0 0/0",
  },
  {
    name: "S08 the partition follows a downscale at once",
    set: { ...NEWER, replicas: 1, partition: 3 },
    pods: "o",
    status: stepped(3),
    expected: "partition 1 Shrink",
  },
  {
    name: "S09 without any default in the object there are checks",
    set: NEWER,
    status: rolling(3),
    expected: `Rolling ${READY} WaitForInitialDelay@3 0/0 due in 60 s`,
  },
  {
    name: "S09 a delay of 0 is 0",
    set: NEWER,
    check: { initialDelaySeconds: 0 },
    status: rolling(3),
    expected: `Rolling ${READY} WaitForInitialDelay@3 0/0 due in 0 s`,
  },
  {
    name: "S09 a threshold of 0 is refused",
    check: { successThreshold: 0 },
    expected: "ErrorCannotManage False/ErrorCannotManage Unknown/ErrorCannotManage",
  },
  {
    name: "S10 pods are counted from the first ordinal",
    set: { ...NEWER, start: 5, partition: 2, updated: 1 },
    pods: "oon",
    status: checking(2, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }),
    expected: "release db-6 by partition 1",
  },
  {
    name: "S11 a StatefulSet that is being deleted is not written",
    set: { terminating: true, owner: undefined },
    finalizers: [],
    expected: "ErrorSTSNotFound False/ErrorSTSNotFound Unknown/ErrorSTSNotFound",
  },
  { name: "S11 nor given back", set: { terminating: true }, terminating: true, expected: "dropFinalizer" },
  {
    name: "S15 the loser of two claims it once the winner is gone",
    set: { owner: undefined },
    expected: "claim",
  },
  {
    name: "S17 outside a rollout there is no step",
    set: null,
    status: rolling(2),
    expected: "ErrorSTSNotFound False/ErrorSTSNotFound Unknown/ErrorSTSNotFound",
  },
  {
    name: "S20 with finalCheck the last step is checked as well",
    set: { current: NEW, update: NEW },
    pods: "nnn",
    spec: { finalCheck: true },
    status: rolling(0),
    expected: `Rolling ${READY} WaitForInitialDelay@0 0/0 due in 60 s`,
  },
  {
    name: "S20 a failed final check holds the completion",
    set: { current: NEW, update: NEW },
    pods: "nnn",
    spec: { finalCheck: true },
    status: checking(0, { lastAttemptTime: ago(60) }),
    answer: data,
    expected: `Rolling ${READY} WaitForChecks@0 0/1 checks True due in 60 s`,
  },
  {
    name: "S20 after the last success it is complete",
    set: { current: NEW, update: NEW },
    pods: "nnn",
    spec: { finalCheck: true },
    status: checking(0, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }),
    expected: "Updated True/Ready True/Updated",
  },
  {
    name: "S20 a rollback has none",
    set: { partition: 3 },
    spec: { finalCheck: true },
    status: ROLLED_BACK,
    expected: "Updated True/Ready True/Updated",
  },
]);

const PAUSED = { "sts.plus/pause": "true" };
const promote = (step: string): Scene => ({ annotations: { "sts.plus/promote-step": step } });

table("pausing and promoting by hand", [
  {
    name: "a paused rollout checks nothing",
    set: NEWER,
    annotations: PAUSED,
    status: checking(3),
    expected: `Rolling ${READY} Paused@3 0/0`,
  },
  {
    name: "and releases nothing that was checked before",
    set: NEWER,
    annotations: PAUSED,
    status: checking(3, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }),
    expected: `Rolling ${READY} Paused@3 0/0`,
  },
  { name: "only `true` pauses", set: NEWER, annotations: { "sts.plus/pause": "yes" }, status: checking(3), expected: "check" },
  {
    name: "after the pause the step begins again",
    set: NEWER,
    status: rolling(3, { status: "Paused" }),
    expected: `Rolling ${READY} WaitForInitialDelay@3 0/0 due in 60 s`,
  },
  {
    name: "a rollback does not wait for the end of a pause",
    set: { partition: 3 },
    pods: "onn",
    annotations: PAUSED,
    status: ROLLED_BACK,
    expected: "partition 2 RollBack",
  },
  {
    name: "a promotion is written down first",
    set: NEWER,
    ...promote(`${NEW}/3`),
    status: rolling(3),
    expected: `Rolling ${READY} WaitForPodToBeUpdated@3 0/0 due in 0 s`,
  },
  {
    name: "a promoted step needs no check",
    set: NEWER,
    ...promote(`${NEW}/3`),
    status: rolling(3, { promoted: true }, { promotedStep: `${NEW}/3` }),
    expected: "release db-2 by partition 2",
  },
  {
    name: "not even in a pause, or after its checks have failed",
    set: NEWER,
    annotations: { ...PAUSED, "sts.plus/promote-step": `${NEW}/3` },
    check: { failureThreshold: 1 },
    status: rolling(3, { promoted: true, consecutiveFailedChecks: 1 }, { promotedStep: `${NEW}/3` }),
    expected: "release db-2 by partition 2",
  },
  {
    name: "a step is promoted once",
    set: NEWER,
    ...promote(`${NEW}/3`),
    status: { ...checking(3), promotedStep: `${NEW}/3` },
    expected: "check",
  },
  { name: "a promotion of another revision is ignored", set: NEWER, ...promote(`${OLD}/3`), status: checking(3), expected: "check" },
  { name: "a promotion of another partition is ignored", set: NEWER, ...promote(`${NEW}/2`), status: checking(3), expected: "check" },
  {
    name: "a promoted step still waits for its pods",
    set: { ...NEWER, available: 2 },
    pods: "o!oo",
    ...promote(`${NEW}/3`),
    status: rolling(3, { promoted: true }),
    expected: `Rolling ${READY} WaitForAllPodsToBeAvailable@3 0/0`,
  },
]);

table("what else holds", [
  {
    name: "a zone of a rollout group is left to its group",
    set: { labels: { "rollout-group": "db" }, owner: undefined },
    finalizers: [],
    expected: "ErrorCannotManage False/ErrorCannotManage Unknown/ErrorCannotManage",
  },
  {
    name: "an old success releases nothing",
    set: NEWER,
    status: checking(3, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(121), lastAttemptTime: ago(121) }),
    expected: `Rolling ${READY} WaitForChecks@3 0/0 checks True due in 0 s`,
  },
  {
    name: "a pod that is updated already is not released again",
    set: { ...NEWER, updated: 2, partition: 2 },
    pods: "onn",
    status: checking(2, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }),
    expected: "release nothing by partition 1",
  },
  {
    name: "while the spec is not observed a rollout waits",
    set: { ...NEWER, observed: false, partition: 2 },
    status: checking(3, { consecutiveSuccessfulChecks: 3 }),
    expected: "Rolling WaitForChecks@3 3/0",
  },
  {
    name: "a threshold that is lowered counts at once",
    set: NEWER,
    check: { successThreshold: 1 },
    status: checking(3, { consecutiveSuccessfulChecks: 1, lastCheckTime: ago(1), lastAttemptTime: ago(1) }),
    expected: "release db-2 by partition 2",
  },
]);

it("S15 the message of ErrorCannotManage names the winner; of a zone, the RolloutGate", () => {
  const messageOf = (scene: Scene): string | undefined => {
    const decision = decidePhased(snapshot(scene));
    return decision.action === "report" ? decision.status.conditions[0]?.message : undefined;
  };
  assert.match(messageOf({ set: { owner: "other" }, other: { name: "other" } }) ?? "", /PhasedRollout other/);
  assert.match(messageOf({ set: { labels: { "rollout-group": "" } } }) ?? "", /RolloutGate/);
});

/** The results of two checks, and of a third that is due; they are of another query than that of the object. */
const OTHER = { checkHash: "01234567", analisysStartTime: ago(300), lastCheckTime: ago(60), lastAttemptTime: ago(60) };
const twoOfUpdated = { set: { ...NEWER, partition: 2, updated: 1 }, pods: "oon", generation: 2 };
const begunAnew = `Rolling ${READY} WaitForChecks@2 0/0 due in 0 s`;

table("another check", [
  {
    name: "successes of an earlier query do not count for the answer of the new one",
    ...twoOfUpdated,
    status: checking(2, { ...OTHER, consecutiveSuccessfulChecks: 2 }),
    answer: empty,
    expected: begunAnew,
  },
  {
    name: "successes of an earlier query release nothing",
    ...twoOfUpdated,
    status: checking(2, { ...OTHER, consecutiveSuccessfulChecks: 3 }),
    expected: begunAnew,
  },
  {
    name: "successes of an unknown query, as of an earlier version, release nothing",
    ...twoOfUpdated,
    status: checking(2, { ...OTHER, checkHash: undefined, consecutiveSuccessfulChecks: 3 }),
    expected: begunAnew,
  },
  {
    name: "failures of an earlier query stop nothing",
    ...twoOfUpdated,
    check: { failureThreshold: 2 },
    status: checking(2, { ...OTHER, consecutiveFailedChecks: 2 }),
    expected: begunAnew,
  },
  {
    name: "an error of an earlier query delays nothing",
    ...twoOfUpdated,
    status: checking(2, { ...OTHER, status: "PrometheusError", consecutiveErrors: 3, lastError: "gone" }),
    expected: begunAnew,
  },
  {
    name: "the step begins again once",
    ...twoOfUpdated,
    status: checking(2, { checkHash: undefined }),
    expected: "check",
  },
]);

it("a step that was promoted stays so under another check, and its pod is released", () => {
  const stored = checking(2, { ...OTHER, promoted: true, consecutiveSuccessfulChecks: 1 });
  const decision = decidePhased(snapshot({ ...twoOfUpdated, status: stored }));
  assert.ok(decision.action === "report");
  const { status } = decision;
  assert.equal(decideIn({ ...twoOfUpdated, status }), "release db-1 by partition 1");
});

it("an edit of the expression, the server, its Secret, or a new default of successWhen make another check; thresholds and times do not", () => {
  const base = { expr: "up == 0", url: "http://prom" };
  const hashed = (query: object, check: object = {}, byDefault: "NoData" | "Data" = "NoData"): string =>
    hashOf(readPhasedRollout(rolloutObject({ query: { ...base, ...query }, check }), byDefault).check);
  const others = [hashed({ expr: "up" }), hashed({ url: "http://other" }), hashed({ secretRef: "s" }), hashed({}, {}, "Data")];
  assert.equal(new Set([hashed({}), ...others]).size, 5);
  const more = { initialDelaySeconds: 5, periodSeconds: 5, successThreshold: 9, failureThreshold: 9 };
  assert.equal(hashed({ successWhen: "NoData" }, more), hashed({}));
});
