/** Where a PhasedRollout behaves better than the original. */
import { ago, data, empty, NEW, rolling, unreachable } from "./builders.ts";
import { checking, held, NEWER, passed, released, ROLLED_BACK, table } from "./table.ts";

table("better than the original", [
  [
    "a pod that is lost during the initial delay begins the step again",
    held("oo!o", rolling(3, { status: "WaitForInitialDelay", analisysStartTime: ago(20) })),
    "Rolling WaitForAllPodsToBeAvailable@3 0/0",
  ],
  [
    "a pod that is lost after the last success, too",
    held("oo!o", passed(3)),
    "Rolling WaitForAllPodsToBeAvailable@3 0/0",
  ],
  [
    "a status that counts fewer pods than there are is believed",
    { set: { ...NEWER, available: 2 }, status: checking(3) },
    "Rolling WaitForAllPodsToBeAvailable@3 0/0",
  ],
  [
    "a pod that the status still counts, but is terminating, is not there",
    held("oo-o", checking(3)),
    "Rolling WaitForAllPodsToBeAvailable@3 0/0",
  ],
  [
    "an error breaks the row of successes, and the next check comes soon",
    held("ooo", checking(3, { consecutiveSuccessfulChecks: 2, lastAttemptTime: ago(60) }), { answer: unreachable }),
    "Rolling PrometheusError@3 0/0 checks False due in 5 s",
  ],
  [
    "after the third error in a row, later",
    held("ooo", checking(3, { consecutiveErrors: 2, lastAttemptTime: ago(60) }), { answer: unreachable }),
    "Rolling PrometheusError@3 0/0 checks False due in 20 s",
  ],
  [
    "without a limit, failed checks hold the rollout for ever",
    held("ooo", checking(3, { consecutiveFailedChecks: 99, lastAttemptTime: ago(60) }), { answer: data }),
    "Rolling WaitForChecks@3 0/100 checks True due in 60 s",
  ],
  [
    "with failureThreshold the rollout stalls",
    held("ooo", checking(3, { consecutiveFailedChecks: 2, lastAttemptTime: ago(99) }), {
      check: { failureThreshold: 2 },
    }),
    "Stalled True/Ready False/ChecksFailed WaitForChecks@3 0/2 checks True",
  ],
  [
    "after progressDeadlineSeconds it is stalled and goes on",
    held("ooo", checking(3, { lastAttemptTime: ago(60) }), { spec: { progressDeadlineSeconds: 100 }, answer: empty }),
    "Stalled True/Ready False/ProgressDeadlineExceeded WaitForChecks@3 1/0 checks True due in 60 s",
  ],
  [
    "before the deadline the next read is not later than it",
    held("ooo", checking(3, { lastAttemptTime: ago(1) }), { spec: { progressDeadlineSeconds: 310 } }),
    "Rolling WaitForChecks@3 0/0 checks True due in 10 s",
  ],
  [
    "the last pod has a deadline, too",
    released(0, "n!nn", rolling(0), { spec: { progressDeadlineSeconds: 100 } }),
    "Stalled True/Ready False/ProgressDeadlineExceeded WaitForAllPodsToBeAvailable@0 0/0",
  ],
  [
    "after the clock was turned back the step begins again: its successes would never be too old",
    held(
      "ooo",
      checking(3, { consecutiveSuccessfulChecks: 3, lastAttemptTime: ago(-3600), lastCheckTime: ago(-3600) }),
    ),
    "Rolling WaitForPodToBeUpdated@3 0/0 due in 0 s",
  ],
  [
    "and its delay would last for ever",
    held("ooo", rolling(3, { status: "WaitForInitialDelay", analisysStartTime: ago(-3600) })),
    "Rolling WaitForPodToBeUpdated@3 0/0 due in 0 s",
  ],
  [
    "a clock that is a little behind that of the process before begins nothing again",
    held("ooo", checking(3, { consecutiveSuccessfulChecks: 3, lastAttemptTime: ago(-5), lastCheckTime: ago(-5) })),
    "release db-2 by partition 2",
  ],
  [
    "a delay of 0 is 0",
    held("ooo", rolling(3), { check: { initialDelaySeconds: 0 } }),
    "Rolling WaitForInitialDelay@3 0/0 due in 0 s",
  ],
  ["a threshold of 0 is refused", { check: { successThreshold: 0 } }, "ErrorCannotManage"],
  [
    "skipCheck and its other name differ: neither of them counts",
    { spec: { skipCheck: true, standardRollingUpdate: false } },
    "ErrorCannotManage",
  ],
  ["an empty targetRef names no StatefulSet", { set: null, spec: { targetRef: "" } }, "ErrorSTSNotFound"],
  [
    "pods are counted from the first ordinal",
    {
      set: { ...NEWER, start: 5, partition: 2 },
      pods: "oon",
      status: passed(2),
    },
    "release db-6 by partition 1",
  ],
  [
    "a StatefulSet that is being deleted is not written",
    { set: { terminating: true, owner: undefined }, finalizers: [] },
    "ErrorSTSNotFound",
  ],
  ["nor given back", { set: { terminating: true }, terminating: true }, "dropFinalizer"],
  ["outside a rollout there is no step", { set: null, status: rolling(2) }, "ErrorSTSNotFound"],
  [
    "with finalCheck the last step is checked as well",
    { set: { current: NEW, update: NEW }, pods: "nnn", spec: { finalCheck: true }, status: rolling(0) },
    "Rolling WaitForInitialDelay@0 0/0 due in 60 s",
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
    "Rolling WaitForChecks@0 0/1 checks True due in 60 s",
  ],
  [
    "after the last success it is complete",
    {
      set: { current: NEW, update: NEW },
      pods: "nnn",
      spec: { finalCheck: true },
      status: passed(0),
    },
    "Updated",
  ],
  ["a rollback has none", { set: { partition: 3 }, spec: { finalCheck: true }, status: ROLLED_BACK }, "Updated"],
]);
