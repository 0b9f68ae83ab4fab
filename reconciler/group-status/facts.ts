/** The facts that a tick found out about a group, and the earlier status of the group. */
import type { Hold } from "../model/decision.ts";
import type { RemainingZone } from "../model/outcome.ts";
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
