/** Where a PhasedRollout behaves better than the original. */
import { ago, data, empty, NEW, rolling, unreachable } from "./builders.ts";
import { checking, NEWER, READY, ROLLED_BACK, table } from "./table.ts";

table("better than the original", [
  [
    "a pod that is lost during the initial delay begins the step again",
    { set: NEWER, pods: "oo!o", status: rolling(3, { status: "WaitForInitialDelay", analisysStartTime: ago(20) }) },
    `Rolling ${READY} WaitForAllPodsToBeAvailable@3 0/0`,
  ],
  [
    "a pod that is lost after the last success, too",
    { set: NEWER, pods: "oo!o", status: checking(3, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }) },
    `Rolling ${READY} WaitForAllPodsToBeAvailable@3 0/0`,
  ],
  [
    "a status that counts fewer pods than there are is believed",
    { set: { ...NEWER, available: 2 }, status: checking(3) },
    `Rolling ${READY} WaitForAllPodsToBeAvailable@3 0/0`,
  ],
  [
    "a pod that the status still counts, but is terminating, is not there",
    { set: NEWER, pods: "oo-o", status: checking(3) },
    `Rolling ${READY} WaitForAllPodsToBeAvailable@3 0/0`,
  ],
  [
    "an error breaks the row of successes, and the next check comes soon",
    {
      set: NEWER,
      status: checking(3, { consecutiveSuccessfulChecks: 2, lastAttemptTime: ago(60) }),
      answer: unreachable,
    },
    `Rolling ${READY} PrometheusError@3 0/0 checks False due in 5 s`,
  ],
  [
    "after the third error in a row, later",
    { set: NEWER, status: checking(3, { consecutiveErrors: 2, lastAttemptTime: ago(60) }), answer: unreachable },
    `Rolling ${READY} PrometheusError@3 0/0 checks False due in 20 s`,
  ],
  [
    "without a limit, failed checks hold the rollout for ever",
    { set: NEWER, status: checking(3, { consecutiveFailedChecks: 99, lastAttemptTime: ago(60) }), answer: data },
    `Rolling ${READY} WaitForChecks@3 0/100 checks True due in 60 s`,
  ],
  [
    "with failureThreshold the rollout stalls",
    {
      set: NEWER,
      check: { failureThreshold: 2 },
      status: checking(3, { consecutiveFailedChecks: 2, lastAttemptTime: ago(99) }),
    },
    "Stalled True/Ready False/ChecksFailed WaitForChecks@3 0/2 checks True",
  ],
  [
    "after progressDeadlineSeconds it is stalled and goes on",
    {
      set: NEWER,
      spec: { progressDeadlineSeconds: 100 },
      status: checking(3, { lastAttemptTime: ago(60) }),
      answer: empty,
    },
    "Stalled True/Ready False/ProgressDeadlineExceeded WaitForChecks@3 1/0 checks True due in 60 s",
  ],
  [
    "before the deadline the next read is not later than it",
    { set: NEWER, spec: { progressDeadlineSeconds: 310 }, status: checking(3, { lastAttemptTime: ago(1) }) },
    `Rolling ${READY} WaitForChecks@3 0/0 checks True due in 10 s`,
  ],
  [
    "the last pod has a deadline, too",
    { set: { ...NEWER, partition: 0 }, pods: "n!nn", spec: { progressDeadlineSeconds: 100 }, status: rolling(0) },
    "Stalled True/Ready False/ProgressDeadlineExceeded WaitForAllPodsToBeAvailable@0 0/0",
  ],
  [
    "after the clock was turned back the step begins again: its successes would never be too old",
    {
      set: NEWER,
      status: checking(3, { consecutiveSuccessfulChecks: 3, lastAttemptTime: ago(-3600), lastCheckTime: ago(-3600) }),
    },
    `Rolling ${READY} WaitForPodToBeUpdated@3 0/0 due in 0 s`,
  ],
  [
    "and its delay would last for ever",
    { set: NEWER, status: rolling(3, { status: "WaitForInitialDelay", analisysStartTime: ago(-3600) }) },
    `Rolling ${READY} WaitForPodToBeUpdated@3 0/0 due in 0 s`,
  ],
  [
    "a clock that is a little behind that of the process before begins nothing again",
    {
      set: NEWER,
      status: checking(3, { consecutiveSuccessfulChecks: 3, lastAttemptTime: ago(-5), lastCheckTime: ago(-5) }),
    },
    "release db-2 by partition 2",
  ],
  [
    "a delay of 0 is 0",
    { set: NEWER, check: { initialDelaySeconds: 0 }, status: rolling(3) },
    `Rolling ${READY} WaitForInitialDelay@3 0/0 due in 0 s`,
  ],
  [
    "a threshold of 0 is refused",
    { check: { successThreshold: 0 } },
    "ErrorCannotManage False/ErrorCannotManage Unknown/ErrorCannotManage",
  ],
  [
    "pods are counted from the first ordinal",
    {
      set: { ...NEWER, start: 5, partition: 2 },
      pods: "oon",
      status: checking(2, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }),
    },
    "release db-6 by partition 1",
  ],
  [
    "a StatefulSet that is being deleted is not written",
    { set: { terminating: true, owner: undefined }, finalizers: [] },
    "ErrorSTSNotFound False/ErrorSTSNotFound Unknown/ErrorSTSNotFound",
  ],
  ["nor given back", { set: { terminating: true }, terminating: true }, "dropFinalizer"],
  [
    "outside a rollout there is no step",
    { set: null, status: rolling(2) },
    "ErrorSTSNotFound False/ErrorSTSNotFound Unknown/ErrorSTSNotFound",
  ],
  [
    "with finalCheck the last step is checked as well",
    { set: { current: NEW, update: NEW }, pods: "nnn", spec: { finalCheck: true }, status: rolling(0) },
    `Rolling ${READY} WaitForInitialDelay@0 0/0 due in 60 s`,
  ],
  [
    "a failed final check holds the completion",
    {
      set: { current: NEW, update: NEW },
      pods: "nnn",
      spec: { finalCheck: true },
      status: checking(0, { lastAttemptTime: ago(60) }),
      answer: data,
    },
    `Rolling ${READY} WaitForChecks@0 0/1 checks True due in 60 s`,
  ],
  [
    "after the last success it is complete",
    {
      set: { current: NEW, update: NEW },
      pods: "nnn",
      spec: { finalCheck: true },
      status: checking(0, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }),
    },
    "Updated True/Ready True/Updated",
  ],
  [
    "a rollback has none",
    { set: { partition: 3 }, spec: { finalCheck: true }, status: ROLLED_BACK },
    "Updated True/Ready True/Updated",
  ],
]);
