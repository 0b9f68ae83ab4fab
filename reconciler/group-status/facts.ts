/** The facts that a tick found out about a group, and the earlier status of the group. */
import type { Hold } from "../model/decision.ts";
import { messageOf } from "../../infra/errors.ts";
import { isFailure, type Outcome, type RemainingZone } from "../model/outcome.ts";
import { describeOutcome } from "../report/log-lines.ts";
import { countRemaining } from "../rollout/decide-rollout.ts";
import type { RolloutGroupStatus } from "./status.ts";

export interface GroupFacts extends Pick<Outcome, "group" | "state" | "zones" | "scalingHolds" | "bypasses"> {
  /** The sentence of the log. */
  readonly message: string;
  /** Why the rollout waits. */
  readonly hold: Hold | undefined;
  readonly step: { readonly action: "deletePods" | "finishZone" | "scaleZone"; readonly zone: string } | undefined;
  /** The rest of the rollout, before the step of this tick. */
  readonly remaining: readonly RemainingZone[];
  readonly replaced: number;
  readonly failing: boolean;
}

export interface StatusInput {
  readonly facts: GroupFacts;
  /** The status as stored; empty for a new object. */
  readonly earlier: Partial<RolloutGroupStatus>;
  /** The generation of the RolloutGroup that was read before the zones. */
  readonly generation: number;
  /** Milliseconds without a step after which a group that is not ready counts as stalled. */
  readonly deadlineMs: number;
  readonly now: number;
  readonly tookMs: number;
  readonly passes: number;
}

/** From the outcome that the log, the metrics and the Events show. Of a group that is gone it has no zones. */
export function factsOfOutcome(outcome: Outcome): GroupFacts {
  const { group, zones, state, scalingHolds, bypasses } = outcome;
  const { text } = describeOutcome(outcome);
  return {
    group,
    zones,
    state,
    // The log tells in its fields what went wrong.
    message: outcome.state === "failed" ? `${text}: ${messageOf(outcome.error)}` : text,
    hold: outcome.state === "held" ? outcome.hold : undefined,
    scalingHolds,
    ...(bypasses && { bypasses }),
    step: outcome.state === "acted" ? { action: outcome.decision.action, zone: outcome.decision.zone.name } : undefined,
    remaining: outcome.remaining ?? countRemaining(zones),
    replaced: outcome.state === "acted" ? outcome.effect.replaced.length : 0,
    failing: isFailure(outcome),
  };
}
