/** A revert in the middle of a rollout, and pods of neither revision. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { decidePhased } from "../../../reconciler/phased/decide-phased.ts";
import { ago, OLD, rolling, snapshot } from "./builders.ts";
import { HELD } from "../../../reconciler/phased/target.ts";
import { released, ROLLED_BACK, table } from "./table.ts";

const PASSED = { status: "WaitForChecks", consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) };

table("better than the original", [
  [
    "a revert is not complete while pods of the reverted revision are left",
    { set: { partition: 2 }, pods: "o.n", status: ROLLED_BACK },
    "Rolling True/Ready False/RollingBack",
  ],
  [
    "a revert that finds several pods released keeps all but the last",
    { set: { partition: 1 }, pods: "onn", status: ROLLED_BACK },
    "partition 2 RollBack",
  ],
  [
    "also while that one is terminating",
    { set: { partition: 1 }, pods: "onn-", status: ROLLED_BACK },
    "partition 2 RollBack",
  ],
  [
    "the next pod of a reverted template is released once the last one is replaced",
    { set: { partition: 2 }, pods: "ono", status: ROLLED_BACK },
    "partition 1 RollBack",
  ],
  [
    "not while the last one is terminating",
    { set: { partition: 3 }, pods: "onn-", status: ROLLED_BACK },
    "Rolling True/Ready False/RollingBack",
  ],
  [
    "nor while OrderedReady waits for a pod: it would replace none",
    { set: { partition: 2 }, pods: "ono!", status: ROLLED_BACK },
    "Rolling True/Ready False/RollingBack",
  ],
  [
    "under Parallel it is released at once, for the budget to decide",
    { set: { partition: 2, policy: "Parallel" }, pods: "ono!", status: ROLLED_BACK },
    "partition 1 RollBack",
  ],
  [
    "under Parallel a pod of a reverted template that is not ready goes first",
    { set: { partition: 3, policy: "Parallel" }, pods: "on!n", status: ROLLED_BACK },
    "replace db-1",
  ],
  [
    "under OrderedReady a pod that is merely not ready is left alone",
    { set: { partition: 3 }, pods: "on!n", status: ROLLED_BACK },
    "Rolling True/Ready False/RollingBack",
  ],
  [
    "pods of a StatefulSet that was created again around them are no rollback: first they are kept",
    { set: { uid: "uid-2", partition: 0 }, pods: "nnn", status: ROLLED_BACK },
    "held: Contain",
  ],
  [
    "then they roll out by checks",
    { set: { uid: "uid-2", partition: HELD }, pods: "nnn", status: ROLLED_BACK },
    "Rolling WaitForPodToBeUpdated@3 0/0 due in 0 s",
  ],
  [
    "also if a status was written before anything was decided about it",
    {
      set: { createdAt: ago(3600), partition: HELD },
      pods: "nnn",
      status: { phase: "Updated", targetUID: "uid-db", updateRevision: OLD },
    },
    "Rolling WaitForPodToBeUpdated@3 0/0 due in 0 s",
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
    "Rolling WaitForInitialDelay@3 0/0 due in 60 s",
  ],
  [
    "one by one",
    {
      set: { uid: "uid-2", partition: 2 },
      pods: "nno",
      status: rolling(3, PASSED, { targetUID: "uid-2", updateRevision: OLD }),
    },
    "Rolling WaitForPodToBeUpdated@2 0/0 due in 0 s",
  ],
  [
    "a revert is complete once they are gone",
    { set: { partition: 1 }, pods: "ooo", status: ROLLED_BACK },
    "partition 3 Guard",
  ],
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
    "Rolling WaitForAllPodsToBeAvailable@2 0/0",
  ],
  [
    "a pod of neither revision that works is left alone",
    released(2, "oox", rolling(2)),
    "Rolling WaitForPodToBeUpdated@2 0/0",
  ],
]);

it("a StatefulSet that was created again is recorded once something is decided about it, not before its status is there", () => {
  const status = { phase: "Updated", targetUID: "uid-db", updateRevision: OLD };
  const uidAfter = (set: object): unknown => {
    const decision = decidePhased(snapshot({ set: { uid: "uid-2", ...set }, status }));
    return decision.action === "report" && decision.status.targetUID;
  };
  assert.equal(uidAfter({ observed: false }), undefined);
  assert.equal(uidAfter({}), "uid-2");
});
