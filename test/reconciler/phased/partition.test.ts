/** What becomes of the partition when a StatefulSet is resized, or gets another partition or template. */
import { NEW, OLD, rolling } from "./builders.ts";
import { checking, held, NEWER, passed, released, stepped, table } from "./table.ts";

table("what becomes of the partition", [
  [
    "adoption in the middle of a rollout keeps the pods that are not updated",
    { set: { ...NEWER, partition: 0 }, pods: "oon" },
    "held: Contain",
  ],
  ["idle, scaled up", { set: { replicas: 5, partition: 3 } }, "partition 5 Guard"],
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
    released(2, "oon.", stepped(2)),
    "Rolling WaitForPodToBeUpdated@2 0/0",
  ],
  ["scaled down below the partition: none is released any more", released(3, "oo", stepped(3)), "held: Hold"],
  [
    "scaled down to the partition: the step goes on without its pod",
    held("oo", rolling(2)),
    "Rolling WaitForInitialDelay@2 0/0 due in 60 s",
  ],
  [
    "scaled up from 0 with another template, in one write: everything begins above all pods",
    released(0, "nnn", { phase: "Updated", updateRevision: OLD, targetUID: "uid-db" }),
    "held: Restart",
  ],
  [
    "scaled to 0",
    { set: { partition: 2, current: NEW, update: NEW }, pods: "", status: rolling(2) },
    "partition 0 Guard",
  ],
  [
    "somebody lowers the partition: the pods that are not updated are kept",
    released(1, "oon", stepped(2)),
    "held: Contain",
  ],
  [
    "somebody lowers the partition, and a pod is gone before anybody looks",
    released(1, "oo-n", stepped(2)),
    "held: Contain",
  ],
  [
    "somebody lowers the partition by two, after all checks of the step",
    released(2, "oooon", passed(4)),
    "held: Contain",
  ],
  [
    "somebody raises the partition: that is a decision",
    released(4, "oooon", stepped(3)),
    "Rolling WaitForPodToBeUpdated@4 0/0 due in 0 s",
  ],
  [
    "somebody raises the partition above all pods",
    held("oon", stepped(2)),
    "Rolling WaitForPodToBeUpdated@3 0/0 due in 0 s",
  ],
  [
    "scaled down below the step: no pod is left that could be kept",
    held("oo", stepped(4)),
    "Rolling WaitForPodToBeUpdated@2 0/0 due in 0 s",
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
    "Rolling WaitForPodToBeUpdated@3 0/0 due in 0 s",
  ],
  [
    "the StatefulSet was recreated by another one: the stored step counts for nothing",
    {
      set: { ...NEWER, uid: "uid-2", partition: 2 },
      pods: "oon",
      status: checking(2, { consecutiveSuccessfulChecks: 3 }),
    },
    "Rolling WaitForPodToBeUpdated@2 0/0 due in 0 s",
  ],
  [
    "somebody lowers the partition by one step, unless the checks have passed, unless the checks have passed",
    released(0, "onn", checking(1, { consecutiveSuccessfulChecks: 2 })),
    "held: Contain",
  ],
]);
