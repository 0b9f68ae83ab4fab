/** The next write for one PhasedRollout, in the cases that the original documents. */
import { ago, data, empty, NEW, OLD, rolling, unreachable } from "../../builders/phased.ts";
import { checking, delaying, done, held, NEWER, passed, released, table } from "./table.ts";

table("the original's cases", [
  ["no such StatefulSet", { set: null }, "ErrorSTSNotFound"],
  ["a StatefulSet with OnDelete", { set: { strategy: "OnDelete" } }, "ErrorCannotManage"],
  ["a StatefulSet of nobody: first the finalizer", { set: { owner: undefined }, finalizers: [] }, "addFinalizer"],
  ["a StatefulSet of nobody: then the claim", { set: { owner: undefined } }, "claim, before: 3"],
  ["a StatefulSet of a PhasedRollout that is gone", { set: { owner: "gone" } }, "claim"],
  [
    "a StatefulSet of a PhasedRollout with another target",
    { set: { owner: "other" }, other: { name: "other", spec: { targetRef: "cache" } } },
    "claim",
  ],
  [
    "a StatefulSet of another PhasedRollout",
    { set: { owner: "other" }, other: { name: "other" }, finalizers: [] },
    "ErrorCannotManage",
  ],
  ["an idle StatefulSet with all pods free to roll", { set: { partition: 0 } }, "partition 3 Guard"],
  ["an idle StatefulSet without a partition", { set: { partition: undefined } }, "partition 3 Guard"],
  ["an idle StatefulSet with its guard", {}, "Updated"],
  ["suspended: the partition goes first", { spec: { standardRollingUpdate: true } }, "partition 0 Suspend"],
  ["suspended without a partition", { spec: { skipCheck: true }, set: { partition: undefined } }, "Suspended"],
  ["deleted: the StatefulSet is given back", { terminating: true }, "give back with partition 0, 0 pods"],
  ["deleted, given back", { terminating: true, set: { owner: undefined } }, "dropFinalizer"],
  ["deleted without its StatefulSet", { terminating: true, set: null }, "dropFinalizer"],
  [
    "a new revision",
    held("ooo", { phase: "Updated", updateRevision: OLD, targetUID: "uid-db" }),
    "WaitForPodToBeUpdated@3 due in 0 s",
  ],
  ["the first step: all pods are available", held("ooo", rolling(3)), "WaitForInitialDelay@3 due in 60 s"],
  ["during the initial delay", held("ooo", delaying(3, 20)), "WaitForInitialDelay@3 due in 40 s"],
  ["after the initial delay", held("ooo", checking(3)), "check"],
  [
    "a Secret that is missing",
    held("ooo", checking(3), { answer: { kind: "Error", code: "SecretUnusable", message: "there is no Secret" } }),
    "PrometheusError@3 checks False due in 5 s",
  ],
  [
    "the Secret is there",
    held(
      "ooo",
      checking(3, {
        status: "PrometheusError",
        consecutiveErrors: 1,
        lastError: "SecretUnusable",
        lastAttemptTime: ago(5),
      }),
      { answer: empty },
    ),
    "WaitForChecks@3 1/0 checks True due in 60 s",
  ],
  [
    "the last success is written down before the pod is released",
    held("ooo", checking(3, { consecutiveSuccessfulChecks: 2, lastAttemptTime: ago(60), lastCheckTime: ago(60) }), {
      answer: empty,
    }),
    "WaitForChecks@3 3/0 checks True due in 0 s",
  ],
  ["all checks have passed", held("ooo", passed(3)), "release db-2 by partition 2"],
  ["the next step begins", released(2, "ooo", passed(3)), "WaitForPodToBeUpdated@2 due in 0 s"],
  ["its pod is not updated yet", released(2, "ooo-", rolling(2)), "WaitForPodToBeUpdated@2"],
  ["its pod is updated and not ready", released(2, "oon!", rolling(2)), "WaitForAllPodsToBeAvailable@2"],
  ["its pod is ready", released(2, "oon", rolling(2)), "WaitForInitialDelay@2 due in 60 s"],
  [
    "Prometheus answers an error",
    held("ooo", checking(3, { consecutiveSuccessfulChecks: 2, lastAttemptTime: ago(60), lastCheckTime: ago(60) }), {
      answer: unreachable,
    }),
    "PrometheusError@3 checks False due in 5 s",
  ],
  [
    "data means that the check has failed, unless users say otherwise",
    held("ooo", checking(3, { consecutiveSuccessfulChecks: 2, lastAttemptTime: ago(60) }), { answer: data }),
    "WaitForChecks@3 0/1 checks True due in 60 s",
  ],
  [
    "with successWhen Data, data is a success",
    held("ooo", checking(3), { query: { successWhen: "Data" }, answer: data }),
    "WaitForChecks@3 1/0 checks True due in 60 s",
  ],
  [
    "with successWhen Data, no data is a failure",
    held("ooo", checking(3), { query: { successWhen: "Data" }, answer: empty }),
    "WaitForChecks@3 0/1 checks True due in 60 s",
  ],
  [
    "an empty answer with warnings is no success",
    held("ooo", checking(3), { answer: { ...empty, warnings: ["a store is missing"] } as typeof empty }),
    "PrometheusError@3 checks False due in 5 s",
  ],
  ["the last step releases pod 0", released(1, "onn", passed(1)), "release db-0 by partition 0"],
  [
    "partition 0, pod 0 is being replaced",
    {
      set: { ...NEWER, partition: 0, available: 2 },
      pods: "o-nn",
      status: passed(1),
    },
    "WaitForPodToBeUpdated@0 due in 0 s",
  ],
  [
    "partition 0, the rest is the StatefulSet controller's",
    released(0, "nnn", rolling(0)),
    "WaitForAllPodsToBeAvailable@0",
  ],
  [
    "the rollout is over: first the guard",
    { set: { current: NEW, update: NEW, partition: 0 }, pods: "nnn", status: rolling(0) },
    "partition 3 Guard",
  ],
  ["the rollout is over", done(rolling(0)), "Updated"],
]);
