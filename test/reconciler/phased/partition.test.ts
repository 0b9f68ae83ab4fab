/** What becomes of the partition when a StatefulSet is resized, or gets another partition or template. */
import { ago, NEW, OLD, rolling } from "./builders.ts";
import { backing, checking, NEWER, READY, stepped, table } from "./table.ts";

table("what becomes of the partition", [
  [
    "adoption in the middle of a rollout keeps the pods that are not updated",
    { set: { ...NEWER, partition: 0 }, pods: "oon" },
    "held: Contain",
  ],
  ["idle, scaled up", { set: { replicas: 5, partition: 3 } }, "partition 5 Guard"],
  ["idle, scaled down", { set: { replicas: 2, partition: 3 } }, "partition 2 Guard"],
  [
    "a template and more replicas in one write, without the admission policy: everything begins above all pods",
    {
      set: { ...NEWER, replicas: 5, partition: 3 },
      pods: "ooonn",
      status: { phase: "Updated", updateRevision: OLD, targetUID: "uid-db" },
    },
    "held: Restart",
  ],
  [
    "scaled up in the middle: all pods are waited for",
    { set: { ...NEWER, partition: 2 }, pods: "oon.", status: stepped(2) },
    `Rolling ${READY} WaitForPodToBeUpdated@2 0/0`,
  ],
  [
    "scaled down below the partition: none is released any more",
    { set: { ...NEWER, partition: 3 }, pods: "oo", status: stepped(3) },
    "held: Hold",
  ],
  [
    "scaled down below the partition, then no step waits for pods that are gone",
    { set: NEWER, pods: "oo", status: stepped(3) },
    `Rolling ${READY} WaitForPodToBeUpdated@2 0/0 due in 0 s`,
  ],
  [
    "scaled down above the partition",
    { set: { ...NEWER, partition: 1 }, pods: "on", status: rolling(1) },
    `Rolling ${READY} WaitForInitialDelay@1 0/0 due in 60 s`,
  ],
  [
    "scaled down to the partition: the step goes on without its pod",
    { set: NEWER, pods: "oo", status: rolling(2) },
    `Rolling ${READY} WaitForInitialDelay@2 0/0 due in 60 s`,
  ],
  [
    "scaled up from 0 with another template, in one write: everything begins above all pods",
    {
      set: { ...NEWER, partition: 0 },
      pods: "nnn",
      status: { phase: "Updated", updateRevision: OLD, targetUID: "uid-db" },
    },
    "held: Restart",
  ],
  [
    "scaled to 0",
    { set: { partition: 2, current: NEW, update: NEW }, pods: "", status: rolling(2) },
    "partition 0 Guard",
  ],
  [
    "scaled to 0, then",
    { set: { partition: 0, current: NEW, update: NEW }, pods: "", status: rolling(2) },
    "Updated True/Ready True/Updated",
  ],
  [
    "somebody lowers the partition: the pods that are not updated are kept",
    { set: { ...NEWER, partition: 1 }, pods: "oon", status: stepped(2) },
    "held: Contain",
  ],
  [
    "somebody lowers the partition, and a pod is gone before anybody looks",
    { set: { ...NEWER, partition: 1 }, pods: "oo-n", status: stepped(2) },
    "held: Contain",
  ],
  [
    "somebody lowers the partition by two, after all checks of the step",
    {
      set: { ...NEWER, partition: 2 },
      pods: "oooon",
      status: checking(4, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }),
    },
    "held: Contain",
  ],
  [
    "somebody raises the partition: that is a decision",
    { set: { ...NEWER, partition: 4 }, pods: "oooon", status: stepped(3) },
    `Rolling ${READY} WaitForPodToBeUpdated@4 0/0 due in 0 s`,
  ],
  [
    "somebody raises the partition above all pods",
    { set: NEWER, pods: "oon", status: stepped(2) },
    `Rolling ${READY} WaitForPodToBeUpdated@3 0/0 due in 0 s`,
  ],
  [
    "scaled down below the step: no pod is left that could be kept",
    { set: NEWER, pods: "oo", status: stepped(4) },
    `Rolling ${READY} WaitForPodToBeUpdated@2 0/0 due in 0 s`,
  ],
  [
    "somebody removes the partition in the middle",
    { set: { ...NEWER, partition: undefined }, pods: "oon", status: stepped(2) },
    "held: Contain",
  ],
  ["somebody changes the partition while idle", { set: { partition: 1 } }, "partition 3 Guard"],
  [
    "a third template",
    { set: { current: OLD, update: "db-third", partition: 1 }, pods: "onn", status: rolling(1) },
    "held: Restart",
  ],
  [
    "a third template, then the rollout begins again",
    { set: { current: OLD, update: "db-third" }, pods: "onn", status: rolling(1) },
    `Rolling ${READY} WaitForPodToBeUpdated@3 0/0 due in 0 s`,
  ],
  [
    "reverted in the middle: first the status",
    { set: { partition: 1 }, pods: "onn", status: rolling(1) },
    "Rolling True/Ready False/RollingBack due in 0 s",
  ],
  [
    "reverted in the middle, partition raised by the admission policy: down to the last stale pod",
    {
      set: { partition: 3 },
      pods: "onn",
      status: rolling(1, {}, { updateRevision: OLD, rollingPodStatus: undefined, conditions: [backing("Updated")] }),
    },
    "partition 2 RollBack",
  ],
  [
    "the StatefulSet was recreated by another one: the stored step counts for nothing",
    {
      set: { ...NEWER, uid: "uid-2", partition: 2 },
      pods: "oon",
      status: checking(2, { consecutiveSuccessfulChecks: 3 }),
    },
    `Rolling ${READY} WaitForPodToBeUpdated@2 0/0 due in 0 s`,
  ],
]);

table("better than the original", [
  [
    "an unexplained partition of 0 is raised",
    { set: { ...NEWER, partition: 0 }, pods: "ooo", status: rolling(2) },
    "held: Contain",
  ],
  [
    "even one step away, unless the checks have passed",
    { set: { ...NEWER, partition: 0 }, pods: "onn", status: checking(1, { consecutiveSuccessfulChecks: 2 }) },
    "held: Contain",
  ],
]);
