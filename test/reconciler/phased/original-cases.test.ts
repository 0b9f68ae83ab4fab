/** The next write for one PhasedRollout, in the cases that the original documents. */
import { ago, data, empty, NEW, OLD, rolling, unreachable } from "./builders.ts";
import { checking, NEWER, READY, table } from "./table.ts";

table("the original's cases", [
  ["no such StatefulSet", { set: null }, "ErrorSTSNotFound False/ErrorSTSNotFound Unknown/ErrorSTSNotFound"],
  [
    "a StatefulSet with OnDelete",
    { set: { strategy: "OnDelete" } },
    "ErrorCannotManage False/ErrorCannotManage Unknown/ErrorCannotManage",
  ],
  ["a StatefulSet of nobody: first the finalizer", { set: { owner: undefined }, finalizers: [] }, "addFinalizer"],
  ["a StatefulSet of nobody: then the claim", { set: { owner: undefined } }, "claim, before: 3"],
  ["a StatefulSet of a PhasedRollout that is gone", { set: { owner: "gone" } }, "claim from gone"],
  [
    "a StatefulSet of a PhasedRollout with another target",
    { set: { owner: "other" }, other: { name: "other", spec: { targetRef: "cache" } } },
    "claim from other",
  ],
  [
    "a StatefulSet of another PhasedRollout",
    { set: { owner: "other" }, other: { name: "other" }, finalizers: [] },
    "ErrorCannotManage False/ErrorCannotManage Unknown/ErrorCannotManage",
  ],
  ["an idle StatefulSet with all pods free to roll", { set: { partition: 0 } }, "partition 3 Guard"],
  ["an idle StatefulSet without a partition", { set: { partition: undefined } }, "partition 3 Guard"],
  ["an idle StatefulSet with its guard", {}, "Updated True/Ready True/Updated"],
  ["suspended: the partition goes first", { spec: { standardRollingUpdate: true } }, "partition 0 Suspend"],
  [
    "suspended without a partition",
    { spec: { skipCheck: true }, set: { partition: undefined } },
    "Suspended True/Suspended Unknown/Suspended",
  ],
  ["deleted: the StatefulSet is given back", { terminating: true }, "give back with partition 0, 0 pods"],
  ["deleted, given back", { terminating: true, set: { owner: undefined } }, "dropFinalizer"],
  ["deleted without its StatefulSet", { terminating: true, set: null }, "dropFinalizer"],
  [
    "a new revision",
    { set: NEWER, status: { phase: "Updated", updateRevision: OLD, targetUID: "uid-db" } },
    `Rolling ${READY} WaitForPodToBeUpdated@3 0/0 due in 0 s`,
  ],
  [
    "the first step: all pods are available",
    { set: NEWER, status: rolling(3) },
    `Rolling ${READY} WaitForInitialDelay@3 0/0 due in 60 s`,
  ],
  [
    "during the initial delay",
    { set: NEWER, status: rolling(3, { status: "WaitForInitialDelay", analisysStartTime: ago(20) }) },
    `Rolling ${READY} WaitForInitialDelay@3 0/0 due in 40 s`,
  ],
  ["after the initial delay", { set: NEWER, status: checking(3) }, "check"],
  [
    "a Secret that is missing",
    {
      set: NEWER,
      status: checking(3),
      answer: { kind: "Error", code: "SecretUnusable", message: "there is no Secret" },
    },
    `Rolling ${READY} PrometheusError@3 0/0 checks False due in 5 s`,
  ],
  [
    "the Secret is there",
    {
      set: NEWER,
      status: checking(3, {
        status: "PrometheusError",
        consecutiveErrors: 1,
        lastError: "SecretUnusable",
        lastAttemptTime: ago(5),
      }),
      answer: empty,
    },
    `Rolling ${READY} WaitForChecks@3 1/0 checks True due in 60 s`,
  ],
  [
    "the last success is written down before the pod is released",
    {
      set: NEWER,
      status: checking(3, { consecutiveSuccessfulChecks: 2, lastAttemptTime: ago(60), lastCheckTime: ago(60) }),
      answer: empty,
    },
    `Rolling ${READY} WaitForChecks@3 3/0 checks True due in 0 s`,
  ],
  [
    "all checks have passed",
    {
      set: NEWER,
      status: checking(3, { consecutiveSuccessfulChecks: 3, lastAttemptTime: ago(1), lastCheckTime: ago(1) }),
    },
    "release db-2 by partition 2",
  ],
  [
    "the next step begins",
    { set: { ...NEWER, partition: 2 }, status: checking(3, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }) },
    `Rolling ${READY} WaitForPodToBeUpdated@2 0/0 due in 0 s`,
  ],
  [
    "its pod is not updated yet",
    { set: { ...NEWER, partition: 2 }, pods: "ooo-", status: rolling(2) },
    `Rolling ${READY} WaitForPodToBeUpdated@2 0/0`,
  ],
  [
    "its pod is updated and not ready",
    { set: { ...NEWER, partition: 2 }, pods: "oon!", status: rolling(2) },
    `Rolling ${READY} WaitForAllPodsToBeAvailable@2 0/0`,
  ],
  [
    "its pod is ready",
    { set: { ...NEWER, partition: 2 }, pods: "oon", status: rolling(2) },
    `Rolling ${READY} WaitForInitialDelay@2 0/0 due in 60 s`,
  ],
  [
    "Prometheus answers an error",
    {
      set: NEWER,
      status: checking(3, { consecutiveSuccessfulChecks: 2, lastAttemptTime: ago(60), lastCheckTime: ago(60) }),
      answer: unreachable,
    },
    `Rolling ${READY} PrometheusError@3 0/0 checks False due in 5 s`,
  ],
  [
    "data means that the check has failed, unless users say otherwise",
    { set: NEWER, status: checking(3, { consecutiveSuccessfulChecks: 2, lastAttemptTime: ago(60) }), answer: data },
    `Rolling ${READY} WaitForChecks@3 0/1 checks True due in 60 s`,
  ],
  [
    "with successWhen Data, data is a success",
    { set: NEWER, query: { successWhen: "Data" }, status: checking(3), answer: data },
    `Rolling ${READY} WaitForChecks@3 1/0 checks True due in 60 s`,
  ],
  [
    "with successWhen Data, no data is a failure",
    { set: NEWER, query: { successWhen: "Data" }, status: checking(3), answer: empty },
    `Rolling ${READY} WaitForChecks@3 0/1 checks True due in 60 s`,
  ],
  [
    "an empty answer with warnings is no success",
    { set: NEWER, status: checking(3), answer: { ...empty, warnings: ["a store is missing"] } as typeof empty },
    `Rolling ${READY} PrometheusError@3 0/0 checks False due in 5 s`,
  ],
  [
    "the last step releases pod 0",
    {
      set: { ...NEWER, partition: 1 },
      pods: "onn",
      status: checking(1, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }),
    },
    "release db-0 by partition 0",
  ],
  [
    "partition 0, pod 0 is being replaced",
    {
      set: { ...NEWER, partition: 0, available: 2 },
      pods: "o-nn",
      status: checking(1, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }),
    },
    `Rolling ${READY} WaitForPodToBeUpdated@0 0/0 due in 0 s`,
  ],
  [
    "partition 0, the rest is the StatefulSet controller's",
    { set: { ...NEWER, partition: 0 }, pods: "nnn", status: rolling(0) },
    `Rolling ${READY} WaitForAllPodsToBeAvailable@0 0/0`,
  ],
  [
    "the rollout is over: first the guard",
    { set: { current: NEW, update: NEW, partition: 0 }, pods: "nnn", status: rolling(0) },
    "partition 3 Guard",
  ],
  [
    "the rollout is over",
    { set: { current: NEW, update: NEW }, pods: "nnn", status: rolling(0) },
    "Updated True/Ready True/Updated",
  ],
]);
