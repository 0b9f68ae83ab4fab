import assert from "node:assert/strict";
import { it } from "node:test";
import { decidePhased } from "../../../reconciler/phased/decide-phased.ts";
import { NEW, OLD, rolling, type Scene, snapshot } from "./builders.ts";
import { checking, held, passed, ROLLED_BACK, table } from "./table.ts";

const PAUSED = { "sts.plus/pause": "true" };

const promote = (step: string): Scene => ({ annotations: { "sts.plus/promote-step": step } });

table("pausing and promoting by hand", [
  ["a paused rollout checks nothing", held("ooo", checking(3), { annotations: PAUSED }), "Rolling Paused@3 0/0"],
  [
    "and releases nothing that was checked before",
    held("ooo", passed(3), { annotations: PAUSED }),
    "Rolling Paused@3 0/0",
  ],
  ["only `true` pauses", held("ooo", checking(3), { annotations: { "sts.plus/pause": "yes" } }), "check"],
  [
    "after the pause the step begins again",
    held("ooo", rolling(3, { status: "Paused" })),
    "Rolling WaitForInitialDelay@3 0/0 due in 60 s",
  ],
  [
    "a rollback does not wait for the end of a pause",
    { set: { partition: 3 }, pods: "onn", annotations: PAUSED, status: ROLLED_BACK },
    "partition 2 RollBack",
  ],
  [
    "a promotion is written down first",
    held("ooo", rolling(3), promote(`${NEW}/3`)),
    `Rolling WaitForPodToBeUpdated@3 0/0 due in 0 s`,
  ],
  [
    "a promoted step needs no check",
    held("ooo", rolling(3, { promoted: true }, { promotedStep: `${NEW}/3` }), promote(`${NEW}/3`)),
    "release db-2 by partition 2",
  ],
  [
    "not even in a pause, or after its checks have failed",
    held("ooo", rolling(3, { promoted: true, consecutiveFailedChecks: 1 }, { promotedStep: `${NEW}/3` }), {
      annotations: { ...PAUSED, "sts.plus/promote-step": `${NEW}/3` },
      check: { failureThreshold: 1 },
    }),
    "release db-2 by partition 2",
  ],
  ["a step is promoted once", held("ooo", { ...checking(3), promotedStep: `${NEW}/3` }, promote(`${NEW}/3`)), "check"],
  ["a promotion of another revision is ignored", held("ooo", checking(3), promote(`${OLD}/3`)), "check"],
  ["a promotion of another partition is ignored", held("ooo", checking(3), promote(`${NEW}/2`)), "check"],
  [
    "a promoted step still waits for its pods",
    held("o!oo", rolling(3, { promoted: true }), promote(`${NEW}/3`)),
    `Rolling WaitForAllPodsToBeAvailable@3 0/0`,
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
