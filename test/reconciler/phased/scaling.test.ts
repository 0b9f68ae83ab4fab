/** What becomes of a rollout when its StatefulSet gets other replicas (§16.15). */
import { NEW, rolling } from "./builders.ts";
import { HELD } from "../../../reconciler/phased/target.ts";
import { checking, held, NEWER, passed, released, table } from "./table.ts";

/** Three pods are judged, two of them released. */
const JUDGED = { replicas: 3 };

table("scaled in the middle of a rollout", [
  [
    "whoever has written a partition that keeps all pods: it keeps those that come, too",
    released(3, "ooo", passed(3, JUDGED)),
    "held: Hold",
  ],
  [
    "before the first pod is released: the new pods get the current revision, and all are waited for",
    held("ooo..", passed(3, JUDGED)),
    "Rolling WaitForPodToBeUpdated@5 0/0 due in 0 s",
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
    "Rolling WaitForInitialDelay@1 0/0 due in 60 s",
  ],
  [
    "after the last pod was released: every step has passed",
    {
      set: { ...NEWER, replicas: 5, partition: 0 },
      pods: "nnn..",
      status: rolling(0, JUDGED),
    },
    "Rolling WaitForPodToBeUpdated@0 0/0",
  ],
  [
    "a status of a release that does not know the judged pods: all are",
    released(2, "oonnn", rolling(2)),
    "Rolling WaitForInitialDelay@2 0/0 due in 60 s",
  ],
  [
    "a new pod at the update revision that is not ready returns at once",
    held("onnn!n!", rolling(5, JUDGED)),
    "replace db-3",
  ],
  [
    "one that is ready waits until all pods are",
    { set: { ...NEWER }, pods: "onnno!", status: rolling(5, JUDGED) },
    "Rolling WaitForAllPodsToBeAvailable@5 0/0",
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
    "Rolling WaitForPodToBeUpdated@3 0/0 due in 0 s",
  ],
  [
    "once all have returned, the new pods are to be judged as the others",
    held("onnoo", passed(5, JUDGED)),
    "Rolling WaitForChecks@5 3/0 due in 0 s",
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
    "Rolling WaitForPodToBeUpdated@0 0/0 due in 0 s",
  ],
  ["a lower one is not", released(0, "oonnn", passed(3, { replicas: 5 })), "held: Contain"],
  [
    "while nothing rolls any more",
    { set: { partition: 2_147_483_647, current: NEW, update: NEW }, pods: "nnn", status: rolling(3) },
    "partition 3 Guard",
  ],
]);
