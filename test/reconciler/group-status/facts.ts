/** Facts of a group, and the status that is decided from them. */
import type { GroupFacts } from "../../../reconciler/group-status/facts.ts";
import { decideStatus } from "../../../reconciler/group-status/decide-status.ts";
import type { RolloutGroupStatus } from "../../../reconciler/group-status/status.ts";
import { hold, type Reason } from "../../../reconciler/model/decision.ts";
import { listRemaining } from "../../../reconciler/rollout/decide-rollout.ts";
import { group } from "../../builders/groups.ts";
import { CREATED, OLD, type ZoneTraits } from "../../builders/zones.ts";

interface Case extends Partial<GroupFacts> {
  readonly traits?: readonly ZoneTraits[];
}

export function facts({ traits = [{}, {}, {}], ...more }: Case): GroupFacts {
  const { zones } = group(...traits);
  const common = {
    group: "ingester",
    zones,
    message: "said",
    hold: undefined,
    scalingHolds: [],
    step: undefined,
    replaced: 0,
    failing: false,
  };
  return {
    ...common,
    state: more.hold ? "held" : more.step ? "acted" : "settled",
    remaining: listRemaining(zones),
    ...more,
  };
}

export function decide(
  given: Case,
  earlier: Partial<RolloutGroupStatus> = {},
  { after = 0, generation = 1, deadlineMs = 1_800_000, passes = 1, tookMs = 0 } = {},
) {
  return decideStatus({
    facts: facts(given),
    earlier,
    generation,
    deadlineMs,
    passes,
    tookMs,
    now: CREATED + after * 1000,
  });
}

export const held = (reason: Reason, traits: readonly ZoneTraits[] = [OLD, {}, {}]): Case => ({
  traits,
  hold: hold(reason, `${reason}!`, group(...traits).zones),
});

export const deleted = { action: "deletePods", zone: "ingester-zone-a" } as const;
