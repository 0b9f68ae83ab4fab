/** The facts of a group's status, from the outcome that the log, the metrics and the Events show. */
import { messageOf } from "../../infra/errors.ts";
import type { GroupFacts } from "./facts.ts";
import { describeOutcome } from "../report/describe.ts";
import { isFailure, type Outcome } from "../model/outcome.ts";
import { countRemaining } from "../rollout/remaining.ts";

export function factsOfOutcome(outcome: Outcome): GroupFacts {
  const { zones, state, scalingHolds } = outcome;
  return {
    group: outcome.group,
    zones,
    state,
    message: sentenceOf(outcome),
    hold: state === "held" ? outcome.hold : undefined,
    scalingHolds,
    bypasses: outcome.bypasses,
    step: state === "acted" ? { action: outcome.decision.action, zone: outcome.decision.zone.name } : undefined,
    remaining: outcome.remaining ?? countRemaining(zones),
    replaced: state === "acted" ? outcome.effect.replaced.length : 0,
    failing: isFailure(outcome),
  };
}

/** An error says what went wrong only in the log's fields. */
function sentenceOf(outcome: Outcome): string {
  const { text } = describeOutcome(outcome);
  return outcome.state === "failed" ? `${text}: ${messageOf(outcome.error)}` : text;
}

/** The facts of a group without StatefulSets. */
export const factsWithoutZones = (group: string): GroupFacts => ({
  group,
  zones: [],
  state: "settled",
  message: "",
  hold: undefined,
  scalingHolds: [],
  step: undefined,
  remaining: [],
  replaced: 0,
  failing: false,
});
