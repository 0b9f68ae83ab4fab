/** What becomes of the partition at adoption, deletion and resizes, with other templates and other partitions. */
import { HELD } from "./adapter.ts";
import { ago, NEW, OLD, rolling } from "../../builders/phased.ts";
import { checking, held, NEWER, passed, released, ROLLED_BACK, stepped, table } from "./table.ts";

const SUSPENDED = { phase: "Suspended", targetUID: "uid-db", updateRevision: NEW };
const READY_CONDITION = { type: "Ready", status: "True", reason: "Ready", message: "m", lastTransitionTime: ago(5) };

table("adopted, suspended, given back", [
  [
    "somebody has removed the claim: the partition from before the adoption is not ours",
    { set: { owner: undefined }, status: { phase: "Updated", targetUID: "uid-db", conditions: [READY_CONDITION] } },
    "claim",
  ],
  [
    "the claim is another StatefulSet's: the partition from before returns one day",
    {
      set: { owner: undefined, partition: 1 },
      status: { phase: "Updated", targetUID: "uid-other", conditions: [READY_CONDITION] },
    },
    "claim, before: 1",
  ],
  [
    "another PhasedRollout has released it: the partition from before returns one day",
    {
      set: { owner: undefined, partition: 1 },
      status: {
        phase: "ErrorCannotManage",
        targetUID: "uid-db",
        conditions: [{ ...READY_CONDITION, status: "False" }],
      },
    },
    "claim, before: 1",
  ],
  ["suspended in the middle", released(2, "ooo", rolling(2), { spec: { skipCheck: true } }), "partition 0 Suspend"],
  ["no longer suspended in the middle", released(0, "oon", SUSPENDED), "held: Contain"],
  [
    "no longer suspended, all pods updated",
    { set: { current: NEW, update: NEW, partition: 0 }, pods: "nnn", status: SUSPENDED },
    "partition 3 Guard",
  ],
  [
    "deleted while the StatefulSet is another PhasedRollout's: it is not touched",
    { terminating: true, set: { ...NEWER, partition: 2, owner: "other" }, other: { name: "other" } },
    "dropFinalizer",
  ],
  [
    "deleted in the middle: the original partition returns, and with it the pods",
    {
      terminating: true,
      set: { ...NEWER, partition: 2, annotations: { "sts.plus/original-partition": "1" } },
      pods: "oon",
    },
    "give back with partition 1, 1 pods",
  ],
  [
    "deleted, and the StatefulSet was held before the adoption: it is held again",
    { terminating: true, set: { ...NEWER, annotations: { "sts.plus/original-partition": "2147483647" } } },
    "give back with partition 2147483647, 0 pods",
  ],
  [
    "claimed again after a freeze: the partition from before the first claim stays",
    { set: { ...NEWER, owner: undefined, annotations: { "sts.plus/original-partition": "2147483647" } } },
    "claim",
  ],
  [
    "claimed with a held partition that nobody has explained: it returns as it was found",
    { set: { ...NEWER, owner: undefined } },
    "claim, before: 2147483647",
  ],
  [
    "deleted in the middle with onDelete: freeze",
    { terminating: true, spec: { onDelete: "freeze" }, set: { ...NEWER, partition: 2 }, pods: "oon" },
    "give back with partition kept, 0 pods",
  ],
  [
    "the same of a spec that is wrong elsewhere",
    {
      terminating: true,
      spec: { onDelete: "freeze", skipCheck: true, standardRollingUpdate: false },
      set: { ...NEWER, partition: 2 },
      pods: "oon",
    },
    "give back with partition kept, 0 pods",
  ],
  [
    "a deleted PhasedRollout whose finalizer is gone gives back, and claims nothing",
    { terminating: true, finalizers: ["foregroundDeletion"] },
    "give back with partition 0, 0 pods",
  ],
  [
    "and then it does nothing",
    { terminating: true, finalizers: ["foregroundDeletion"], set: { owner: undefined }, status: { phase: "Updated" } },
    "Updated",
  ],
]);

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
  ["scaled up in the middle: all pods are waited for", released(2, "oon.", stepped(2)), "WaitForPodToBeUpdated@2"],
  ["scaled down below the partition: none is released any more", released(3, "oo", stepped(3)), "held: Hold"],
  [
    "scaled down to the partition: the step goes on without its pod",
    held("oo", rolling(2)),
    "WaitForInitialDelay@2 due in 60 s",
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
    "WaitForPodToBeUpdated@4 due in 0 s",
  ],
  ["somebody raises the partition above all pods", held("oon", stepped(2)), "WaitForPodToBeUpdated@3 due in 0 s"],
  [
    "scaled down below the step: no pod is left that could be kept",
    held("oo", stepped(4)),
    "WaitForPodToBeUpdated@2 due in 0 s",
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
    "WaitForPodToBeUpdated@3 due in 0 s",
  ],
  [
    "the StatefulSet was recreated by another one: the stored step counts for nothing",
    {
      set: { ...NEWER, uid: "uid-2", partition: 2 },
      pods: "oon",
      status: checking(2, { consecutiveSuccessfulChecks: 3 }),
    },
    "of uid-2 WaitForPodToBeUpdated@2 due in 0 s",
  ],
  [
    "somebody lowers the partition by one step, and its checks have not passed",
    released(0, "onn", checking(1, { consecutiveSuccessfulChecks: 2 })),
    "held: Contain",
  ],
]);

/** Far more than there are pods. */
const MANY = 200_000_000;

table("numbers without a bound", [
  [
    "a partition that no step explains",
    { set: { ...NEWER, replicas: MANY, partition: 0 }, pods: "oon" },
    "held: Contain",
  ],
  ["a stored step far above the replicas", released(2, "ooo", stepped(MANY)), "held: Contain"],
  ["a step that is stored with the greatest partition", released(2, "ooo", stepped(HELD)), "held: Contain"],
  ["a step that is stored with no integer", released(2, "ooo", stepped(Number.MAX_VALUE)), "held: Contain"],
  [
    "a scale-out",
    { set: { ...NEWER, replicas: MANY }, pods: "ooon", status: checking(MANY, { replicas: 3 }) },
    `WaitForAllPodsToBeAvailable@${MANY}`,
  ],
  [
    "a rollback",
    { set: { replicas: MANY, updated: 1 }, pods: "ox", status: ROLLED_BACK },
    "Rolling True/Ready False/RollingBack",
  ],
  [
    "all pods released",
    { set: { ...NEWER, replicas: MANY, partition: 0 }, pods: "nnn", status: rolling(0) },
    "WaitForPodToBeUpdated@0",
  ],
]);
