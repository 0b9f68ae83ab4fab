/** Decides the status of a RolloutGroup (§11): it renders the decision that the log and the Events show. */
import { isSameJson } from "../../infra/json.ts";
import { MAX_ZONES } from "../model/too-many-zones.ts";
import { describeHolds, shorten } from "./holds.ts";
import { assessGroup, describeConditions, isGroupReady } from "./conditions.ts";
import type { StatusInput } from "./facts.ts";
import { advanceProgress, estimateEnd, listSteps } from "./progress.ts";
import type { RolloutGroupStatus } from "./status.ts";
import { countReconcile } from "./totals.ts";
import { describeZone, summarizeZones } from "./zones.ts";

export function decideStatus(input: StatusInput): RolloutGroupStatus {
  const { facts, generation } = input;
  // Of a group that is refused for its size: the status of thousands would not fit into an object.
  const zones = facts.zones.slice(0, MAX_ZONES).map((zone) => describeZone(zone, facts.bypasses));
  const plan = listSteps(facts.remaining);
  const totals = facts.zones.length === 0 ? input.earlier.totals : countReconcile(input);
  const progress = facts.zones.length === 0 ? undefined : advanceProgress(input, isGroupReady(input), zones);
  const holds = describeHolds(input, progress);
  const assessment = assessGroup(input, holds, progress);
  return {
    observedGeneration: generation,
    group: facts.group,
    phase: assessment.phase,
    message: shorten(assessment.message),
    summary: summarizeZones(facts.zones, plan, holds),
    zones,
    holds,
    plan,
    ...(progress && { progress: estimateEnd(input, progress, { phase: assessment.phase, holds }) }),
    ...(totals && { totals }),
    conditions: describeConditions(input, assessment),
  };
}

/** How much two statuses differ. */
export type Difference = "none" | "details" | "essence";

/** Sentences and estimates are details: they may change from tick to tick without any news. */
export function compareStatus(before: Partial<RolloutGroupStatus>, after: RolloutGroupStatus): Difference {
  if (!isSameJson(essenceOf(before), essenceOf(after))) return "essence";
  return isSameJson(detailsOf(before), detailsOf(after)) ? "none" : "details";
}

/**
 * The totals of a settled group follow from the ticks that have passed: totals that only grow with them are written
 * along with something else.
 */
function detailsOf({ totals, ...rest }: Partial<RolloutGroupStatus>): object {
  return { ...rest, totals: [totals?.failures, totals?.podsReplaced, totals?.failing] };
}

function essenceOf({ holds, progress, conditions, totals: _totals, ...rest }: Partial<RolloutGroupStatus>): object {
  return {
    ...rest,
    message: "",
    progress: progress && { ...progress, secondsPerPod: 0, estimatedCompletionTime: "" },
    holds: holds?.map((hold) => ({ ...hold, message: "" })),
    conditions: conditions?.map((condition) => ({ ...condition, message: "" })),
  };
}
