/** What becomes of the partition when a StatefulSet is adopted, suspended, cannot be managed, or is given back. */
import { ago, NEW, rolling } from "./builders.ts";
import { NEWER, table } from "./table.ts";

const SUSPENDED = { phase: "Suspended", targetUID: "uid-db", updateRevision: NEW };
const READY_CONDITION = { type: "Ready", status: "True", reason: "Ready", message: "m", lastTransitionTime: ago(5) };
const CANNOT = { phase: "ErrorCannotManage", targetUID: "uid-db", updateRevision: NEW };

table("adopted, suspended, given back", [
  { name: "adoption while idle", set: { partition: 0, owner: undefined }, expected: "claim, before: 0" },
  {
    name: "somebody has removed the claim: the partition from before the adoption is not ours",
    set: { owner: undefined },
    status: { phase: "Updated", targetUID: "uid-db", conditions: [READY_CONDITION] },
    expected: "claim",
  },
  {
    name: "the claim is another StatefulSet's: the partition from before returns one day",
    set: { owner: undefined, partition: 1 },
    status: { phase: "Updated", targetUID: "uid-other", conditions: [READY_CONDITION] },
    expected: "claim, before: 1",
  },
  {
    name: "another PhasedRollout has released it: the partition from before returns one day",
    set: { owner: undefined, partition: 1 },
    status: { phase: "ErrorCannotManage", targetUID: "uid-db", conditions: [{ ...READY_CONDITION, status: "False" }] },
    expected: "claim, before: 1",
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
    expected: "held: Contain",
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
    expected: "held: Contain",
  },
  {
    name: "deleted while the StatefulSet is another PhasedRollout's: it is not touched",
    terminating: true,
    set: { ...NEWER, partition: 2, owner: "other" },
    other: { name: "other" },
    expected: "dropFinalizer",
  },
  {
    name: "deleted in the middle: the original partition returns, and with it the pods",
    terminating: true,
    set: { ...NEWER, partition: 2, updated: 1, annotations: { "sts.plus/original-partition": "1" } },
    pods: "oon",
    expected: "give back with partition 1, 1 pods",
  },
  {
    name: "deleted, and the StatefulSet was held before the adoption: it is held again",
    terminating: true,
    set: { ...NEWER, annotations: { "sts.plus/original-partition": "2147483647" } },
    expected: "give back with partition 2147483647, 0 pods",
  },
  {
    name: "claimed again after a freeze: the partition from before the first claim stays",
    set: { ...NEWER, owner: undefined, annotations: { "sts.plus/original-partition": "2147483647" } },
    expected: "claim",
  },
  {
    name: "claimed with a held partition that nobody has explained: it returns as it was found",
    set: { ...NEWER, owner: undefined },
    expected: "claim, before: 2147483647",
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
