/** The facts that a tick found out about a group, and the earlier status of the group. */
import type { Hold } from "../model/decision.ts";
import { messageOf } from "../../infra/errors.ts";
import { isFailure, type Outcome, type RemainingZone } from "../model/outcome.ts";
import { describeOutcome } from "../report/log-lines.ts";
import { countRemaining } from "../rollout/decide-rollout.ts";
import type { Bypass, Zone } from "../model/zone.ts";
import type { RolloutGroupStatus } from "./status.ts";

export interface GroupFacts {
  /** The value of the label. */
  readonly group: string;
  /** In byte order of their names; none if the group is gone. */
  readonly zones: readonly Zone[];
  /** How the tick ended for the group. */
  readonly state: "settled" | "held" | "acted" | "superseded" | "failed";
  /** The sentence of the log. */
  readonly message: string;
  /** Why the rollout waits. */
  readonly hold: Hold | undefined;
  /** Why zones are not scaled. */
  readonly scalingHolds: readonly Hold[];
  /** Zones that may begin without their gates. */
  readonly bypasses?: readonly Bypass[] | undefined;
  /** The step that was taken. */
  readonly step: { readonly action: "deletePods" | "finishZone" | "scaleZone"; readonly zone: string } | undefined;
  /** The rest of the rollout, before the step of this tick. */
  readonly remaining: readonly RemainingZone[];
  /** Pods that were deleted to be replaced. */
  readonly replaced: number;
  /** The group counts as failed. */
  readonly failing: boolean;
}

/** The facts that a status is decided from. */
export interface StatusInput {
  readonly facts: GroupFacts;
  /** The status as stored; empty for a new object. */
  readonly earlier: Partial<RolloutGroupStatus>;
  /** The generation of the RolloutGroup that was read before the zones. */
  readonly generation: number;
  /** Milliseconds without a step after which a group that is not ready counts as stalled. */
  readonly deadlineMs: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Milliseconds that the tick took for the group. */
  readonly tookMs: number;
  /** The number of this tick among all of the installation. */
  readonly passes: number;
}

/** From the outcome that the log, the metrics and the Events show. */
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
