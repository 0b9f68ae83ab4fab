/** What becomes of the partition when a StatefulSet is adopted, suspended, cannot be managed, or is given back. */
import { ago, NEW, rolling } from "./builders.ts";
import { NEWER, released, table } from "./table.ts";

const SUSPENDED = { phase: "Suspended", targetUID: "uid-db", updateRevision: NEW };
const READY_CONDITION = { type: "Ready", status: "True", reason: "Ready", message: "m", lastTransitionTime: ago(5) };

table("adopted, suspended, given back", [
  ["adoption while idle", { set: { partition: 0, owner: undefined } }, "claim, before: 0"],
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
]);

table("better than the original", [
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
