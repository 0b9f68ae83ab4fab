/** PhasedRollouts: whether each may go on, as in `zonewise explain`. Pure. */
import { h, type ComponentChild } from "preact";
import { explainPhased, nextCheckOf, type Phased } from "../../../cli/decide/explain-phased.ts";
import { judgePhased } from "../../../cli/decide/overview.ts";
import { keyOf } from "../../../functions/status/view/records.ts";
import { showTable } from "../../../functions/status/view/show-tables.ts";
import { showTime } from "../../../functions/status/view/time.ts";
import { firstReleased } from "../../../reconciler/phased/target.ts";

/** Each colour has a word. */
const LOOKS = { stalled: "bad", going: "busy", done: "good" } as const;

export function showPhased(phased: readonly Phased[], now: number): ComponentChild {
  return showTable({
    label: "PhasedRollouts",
    columns: ["PhasedRollout", "Target", "Phase", "Partition", "Updated", "What it says"],
    rows: phased.map((one) => {
      const { rollout, target } = one;
      const progress = judgePhased(one);
      return [
        keyOf(rollout),
        rollout.targetRef,
        h("span", { class: LOOKS[progress] }, `${rollout.status.phase || "Unseen"} (${progress})`),
        target ? `${firstReleased(target)}/${target.replicas}` : "-",
        target ? `${target.status.updated}/${target.replicas}` : "-",
        showExplanation(one, now),
      ];
    }),
  });
}

function showExplanation(one: Phased, now: number): ComponentChild {
  const explanation = explainPhased(one);
  if (explanation.allowed) return explanation.message;
  const { message, reason, since, remedy } = explanation;
  const next = nextCheckOf(one);
  const checks = next === undefined ? [] : [", next check ", showTime(next, now)];
  return [
    message,
    h("p", { class: "faint" }, `${reason} since `, showTime(since, now), ...checks),
    h("p", {}, h("span", { class: "faint" }, "helps "), remedy),
  ];
}
