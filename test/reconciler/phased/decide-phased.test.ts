/** The next write for one PhasedRollout (§16): tables of situations. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { decidePhased } from "../../../reconciler/phased/decide-phased.ts";
import { ago, type Scene, snapshot } from "./builders.ts";
import { checking, held, NEWER, passed, released, table } from "./table.ts";

table("what else holds", [
  [
    "a zone of a rollout group is left to its group",
    { set: { labels: { "rollout-group": "db" }, owner: undefined }, finalizers: [] },
    "ErrorCannotManage",
  ],
  [
    "an old success releases nothing",
    held("ooo", checking(3, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(121), lastAttemptTime: ago(121) })),
    "Rolling WaitForChecks@3 0/0 checks True due in 0 s",
  ],
  [
    "a pod that is updated already is not released again: the next outdated one is",
    released(2, "onn", passed(2)),
    "release db-0 by partition 0",
  ],
  [
    "while the spec is not observed a rollout waits",
    { set: { ...NEWER, observed: false, partition: 2 }, status: checking(3, { consecutiveSuccessfulChecks: 3 }) },
    "Rolling WaitForChecks@3 3/0",
  ],
  [
    "a threshold that is lowered counts at once",
    held("ooo", checking(3, { consecutiveSuccessfulChecks: 1, lastCheckTime: ago(1), lastAttemptTime: ago(1) }), {
      check: { successThreshold: 1 },
    }),
    "release db-2 by partition 2",
  ],
]);

it("the message of ErrorCannotManage names the winner; of a zone, the RolloutGate", () => {
  const messageOf = (scene: Scene): string | undefined => {
    const decision = decidePhased(snapshot(scene));
    return decision.action === "report" ? decision.status.conditions[0]?.message : undefined;
  };
  assert.match(messageOf({ set: { owner: "other" }, other: { name: "other" } }) ?? "", /PhasedRollout other/);
  assert.match(messageOf({ set: { labels: { "rollout-group": "" } } }) ?? "", /RolloutGate/);
});
