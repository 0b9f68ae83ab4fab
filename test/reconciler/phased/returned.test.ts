/** Pods that have passed no step, and go back: after a scale-out, after a revert, and if they cannot come up (§16.15). */
import assert from "node:assert/strict";
import { it } from "node:test";
import { decide, HELD } from "./adapter.ts";
import { ago, NEW, OLD, rolling } from "../../builders/phased.ts";
import { factsOf } from "./scene.ts";
import { checking, decideIn, held, NEWER, passed, released, reverted, ROLLED_BACK, table } from "./table.ts";

/** Three pods are judged, two of them released. */
const JUDGED = { replicas: 3 };

const ROLLING_BACK = "Rolling True/Ready False/RollingBack";

table("scaled in the middle of a rollout", [
  [
    "whoever has written a partition that keeps all pods: it keeps those that come, too",
    released(3, "ooo", passed(3, JUDGED)),
    "held: Hold",
  ],
  [
    "before the first pod is released: the new pods get the current revision, and all are waited for",
    held("ooo..", passed(3, JUDGED)),
    "WaitForPodToBeUpdated@5 due in 0 s",
  ],
  [
    "beyond the pods that are judged: none that is new is released",
    released(1, "onn..", rolling(1, JUDGED)),
    "held: ScaleOut",
  ],
  [
    "before the StatefulSet controller has observed it",
    {
      set: { ...NEWER, replicas: 5, partition: 1, observed: false },
      pods: "onn",
      status: rolling(1, JUDGED),
    },
    "held: ScaleOut",
  ],
  [
    "during a pause, and after failed checks",
    {
      set: { ...NEWER, replicas: 5, partition: 1 },
      pods: "onn",
      annotations: { "sts.plus/pause": "true" },
      check: { failureThreshold: 1 },
      status: checking(1, { ...JUDGED, consecutiveFailedChecks: 9 }),
    },
    "held: ScaleOut",
  ],
  [
    "in the moment between a release and the status of its step",
    {
      set: { ...NEWER, replicas: 5, partition: 2 },
      pods: "oon",
      status: passed(3, JUDGED),
    },
    "held: ScaleOut",
  ],
  [
    "back to replicas whose steps have passed: they are not asked for again",
    released(1, "onn", rolling(1, JUDGED)),
    "WaitForInitialDelay@1 due in 60 s",
  ],
  [
    "after the last pod was released: every step has passed",
    {
      set: { ...NEWER, replicas: 5, partition: 0 },
      pods: "nnn..",
      status: rolling(0, JUDGED),
    },
    "WaitForPodToBeUpdated@0",
  ],
  [
    "a status of a release that does not know the judged pods: all are",
    released(2, "oonnn", rolling(2)),
    "WaitForInitialDelay@2 due in 60 s",
  ],
  [
    "a new pod at the update revision that is not ready returns at once",
    held("onnn!n!", rolling(5, JUDGED)),
    "replace db-3",
  ],
  [
    "one that is ready waits until all pods are",
    { set: { ...NEWER }, pods: "onnno!", status: rolling(5, JUDGED) },
    "WaitForAllPodsToBeAvailable@5",
  ],
  ["then it returns, whatever the checks say", held("onnnn", passed(5, JUDGED)), "replace db-4"],
  [
    "while the partition is low, none returns: it would come back at the update revision",
    released(1, "onn", rolling(1, { replicas: 2 })),
    "held: ScaleOut",
  ],
  [
    "of a StatefulSet that was created again around its pods, none: it would come back at its only revision",
    { set: { current: NEW, update: NEW, partition: HELD }, pods: "onn!", status: rolling(3, { replicas: 2 }) },
    "WaitForPodToBeUpdated@3 due in 0 s",
  ],
  [
    "once all have returned, the new pods are to be judged as the others",
    held("onnoo", passed(5, JUDGED)),
    "WaitForChecks@5 3/0 due in 0 s",
  ],
  [
    "a step that has passed releases the next pod that is not updated: the highest of the new ones",
    held("onnoo", passed(5, { replicas: 5 })),
    "release db-4 by partition 4",
  ],
  [
    "and passes over those that were released before",
    released(3, "onnnn", passed(3, { replicas: 5 })),
    "release db-0 by partition 0",
  ],
  [
    "the partition that passes over pods is ours, and the step of the next one begins",
    released(0, "onn-nn", passed(3, { replicas: 5 })),
    "WaitForPodToBeUpdated@0 due in 0 s",
  ],
  ["a lower one is not", released(0, "oonnn", passed(3, { replicas: 5 })), "held: Contain"],
  [
    "while nothing rolls any more",
    { set: { partition: 2_147_483_647, current: NEW, update: NEW }, pods: "nnn", status: rolling(3) },
    "partition 3 Guard",
  ],
]);

it("a step that begins above the pods that a scale-out added remembers which are judged: the others return", () => {
  const scene = held("onnnn", rolling(1, JUDGED));
  const begun = decide(factsOf(scene));
  assert.ok(begun.action === "report");
  assert.equal(decideIn({ ...scene, status: begun.status }), "replace db-4");
});

const PASSED = { status: "WaitForChecks", consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) };

table("a revert in the middle, and pods of neither revision", [
  ["a revert is not complete while pods of the reverted revision are left", reverted(2, "o.n"), ROLLING_BACK],
  ["a revert that finds several pods released keeps all but the last", reverted(1, "onn"), "partition 2 RollBack"],
  ["also while that one is terminating", reverted(1, "onn-"), "partition 2 RollBack"],
  [
    "the next pod of a reverted template is released once the last one is replaced",
    reverted(2, "ono"),
    "partition 1 RollBack",
  ],
  ["not while the last one is terminating", reverted(3, "onn-"), ROLLING_BACK],
  ["nor while OrderedReady waits for a pod: it would replace none", reverted(2, "ono!"), ROLLING_BACK],
  [
    "under Parallel it is released at once, for the budget to decide",
    reverted(2, "ono!", { policy: "Parallel" }),
    "partition 1 RollBack",
  ],
  [
    "under Parallel a pod of a reverted template that is not ready goes first",
    reverted(3, "on!n", { policy: "Parallel" }),
    "replace db-1",
  ],
  ["under OrderedReady a pod that is merely not ready is left alone", reverted(3, "on!n"), ROLLING_BACK],
  [
    "pods of a StatefulSet that was created again around them are no rollback: first they are kept",
    reverted(0, "nnn", { uid: "uid-2" }),
    "held: Contain",
  ],
  [
    "then they roll out by checks",
    reverted(HELD, "nnn", { uid: "uid-2" }),
    "of uid-2 WaitForPodToBeUpdated@3 due in 0 s",
  ],
  [
    "also if a status was written before anything was decided about it",
    {
      set: { createdAt: ago(3600), partition: HELD },
      pods: "nnn",
      status: { phase: "Updated", targetUID: "uid-db", updateRevision: OLD },
    },
    "WaitForPodToBeUpdated@3 due in 0 s",
  ],
  [
    "pods that are younger than their StatefulSet go back",
    {
      set: { createdAt: ago(3601), partition: 2 },
      pods: "oon",
      status: { phase: "Updated", targetUID: "uid-db", updateRevision: OLD },
    },
    "Rolling True/Ready False/RollingBack due in 0 s",
  ],
  [
    "a younger pod of a reverted template that is not ready goes back at once under Parallel",
    {
      set: { createdAt: ago(1800), policy: "Parallel", partition: HELD },
      pods: "xxn!",
      younger: 2,
      status: rolling(3, {}, { updateRevision: OLD }),
    },
    "replace db-2",
  ],
  [
    "an older one is left to its step, which waits for all others",
    {
      set: { createdAt: ago(1800), policy: "Parallel", partition: HELD },
      pods: "xxn!",
      status: rolling(3, {}, { updateRevision: OLD }),
    },
    "WaitForInitialDelay@3 due in 60 s",
  ],
  [
    "one by one",
    {
      set: { uid: "uid-2", partition: 2 },
      pods: "nno",
      status: rolling(3, PASSED, { targetUID: "uid-2", updateRevision: OLD }),
    },
    "of uid-2 WaitForPodToBeUpdated@2 due in 0 s",
  ],
  ["a revert is complete once they are gone", reverted(1, "ooo"), "partition 3 Guard"],
  [
    "nothing is complete before the controller has observed the spec",
    { set: { observed: false }, status: { phase: "Updated" } },
    "Updated True/Ready Unknown/StatusNotObserved",
  ],
  [
    "a broken pod of neither revision is replaced, however the policy orders pods",
    { set: { available: 2 }, pods: "ooX", status: ROLLED_BACK },
    "replace db-2",
  ],
  [
    "after a third template, too",
    { set: { current: OLD, update: "db-third" }, pods: "ooN", status: rolling(2) },
    "replace db-2",
  ],
  [
    "a broken pod of the new revision is left to its user",
    released(2, "ooN", rolling(2)),
    "WaitForAllPodsToBeAvailable@2",
  ],
  ["a pod of neither revision that works is left alone", released(2, "oox", rolling(2)), "WaitForPodToBeUpdated@2"],
  [
    "a StatefulSet that was created again is recorded once something is decided about it",
    { set: { uid: "uid-2" }, status: { phase: "Updated", targetUID: "uid-db", updateRevision: OLD } },
    "Updated of uid-2",
  ],
  [
    "not before its status is there",
    { set: { uid: "uid-2", observed: false }, status: { phase: "Updated", targetUID: "uid-db", updateRevision: OLD } },
    "Updated True/Ready Unknown/StatusNotObserved",
  ],
]);

table("a step above all pods", [
  [
    "does not wait for the pod that it releases, if that cannot come up",
    held("ooO", passed(3)),
    "release db-2 by partition 2",
  ],
  [
    "waits for one below a pod that serves: to release that one would take a second pod",
    held("oOo", passed(3)),
    `WaitForAllPodsToBeAvailable@3`,
  ],
  ["waits while another pod than that is not ready", held("o!oO", passed(3)), `WaitForAllPodsToBeAvailable@3`],
  [
    "replaces a released pod that cannot come up, as the StatefulSet controller may wait for it",
    released(2, "ooO", rolling(2)),
    "replace db-2",
  ],
]);
