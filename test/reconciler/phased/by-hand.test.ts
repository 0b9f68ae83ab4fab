import assert from "node:assert/strict";
import { it } from "node:test";
import { decidePhased } from "../../../reconciler/phased/decide-phased.ts";
import { ago, NEW, OLD, rolling, type Scene, snapshot } from "./builders.ts";
import { checking, NEWER, READY, ROLLED_BACK, table } from "./table.ts";

const PAUSED = { "sts.plus/pause": "true" };

const promote = (step: string): Scene => ({ annotations: { "sts.plus/promote-step": step } });

table("pausing and promoting by hand", [
  [
    "a paused rollout checks nothing",
    { set: NEWER, annotations: PAUSED, status: checking(3) },
    `Rolling ${READY} Paused@3 0/0`,
  ],
  [
    "and releases nothing that was checked before",
    { set: NEWER, annotations: PAUSED, status: checking(3, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(1) }) },
    `Rolling ${READY} Paused@3 0/0`,
  ],
  ["only `true` pauses", { set: NEWER, annotations: { "sts.plus/pause": "yes" }, status: checking(3) }, "check"],
  [
    "after the pause the step begins again",
    { set: NEWER, status: rolling(3, { status: "Paused" }) },
    `Rolling ${READY} WaitForInitialDelay@3 0/0 due in 60 s`,
  ],
  [
    "a rollback does not wait for the end of a pause",
    { set: { partition: 3 }, pods: "onn", annotations: PAUSED, status: ROLLED_BACK },
    "partition 2 RollBack",
  ],
  [
    "a promotion is written down first",
    { set: NEWER, ...promote(`${NEW}/3`), status: rolling(3) },
    `Rolling ${READY} WaitForPodToBeUpdated@3 0/0 due in 0 s`,
  ],
  [
    "a promoted step needs no check",
    { set: NEWER, ...promote(`${NEW}/3`), status: rolling(3, { promoted: true }, { promotedStep: `${NEW}/3` }) },
    "release db-2 by partition 2",
  ],
  [
    "not even in a pause, or after its checks have failed",
    {
      set: NEWER,
      annotations: { ...PAUSED, "sts.plus/promote-step": `${NEW}/3` },
      check: { failureThreshold: 1 },
      status: rolling(3, { promoted: true, consecutiveFailedChecks: 1 }, { promotedStep: `${NEW}/3` }),
    },
    "release db-2 by partition 2",
  ],
  [
    "a step is promoted once",
    { set: NEWER, ...promote(`${NEW}/3`), status: { ...checking(3), promotedStep: `${NEW}/3` } },
    "check",
  ],
  ["a promotion of another revision is ignored", { set: NEWER, ...promote(`${OLD}/3`), status: checking(3) }, "check"],
  ["a promotion of another partition is ignored", { set: NEWER, ...promote(`${NEW}/2`), status: checking(3) }, "check"],
  [
    "a promoted step still waits for its pods",
    { set: NEWER, pods: "o!oo", ...promote(`${NEW}/3`), status: rolling(3, { promoted: true }) },
    `Rolling ${READY} WaitForAllPodsToBeAvailable@3 0/0`,
  ],
]);

it("a promotion is remembered as long as the annotation has it, so that the same step of a later rollout can be promoted again", () => {
  const rememberedWith = (annotations: Readonly<Record<string, string>>): string | undefined => {
    const decision = decidePhased(snapshot({ annotations, status: { phase: "Updated", promotedStep: `${NEW}/3` } }));
    return decision.action === "report" ? decision.status.promotedStep : assert.fail(decision.action);
  };
  assert.equal(rememberedWith({ "sts.plus/promote-step": `${NEW}/3` }), `${NEW}/3`);
  assert.equal(rememberedWith({}), undefined);
});
