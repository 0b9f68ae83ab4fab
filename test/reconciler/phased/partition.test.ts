/** What becomes of the partition when a rollout begins, is suspended, resized or deleted. */
import { NEW, OLD, rolling } from "./builders.ts";
import { backing, checking, NEWER, READY, stepped, table } from "./table.ts";

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

table("better than the original", [
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
]);
