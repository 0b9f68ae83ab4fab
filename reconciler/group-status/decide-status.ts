/**
 * Decides the status of a RolloutGroup (§11): it renders the decision that the log and the Events show. The phase decides
 * the conditions, which follow kstatus
 * (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md).
 *
 *   Ready        all zones are updated and ready, by the latest spec of each     Ready is True
 *   RollingOut   pods are being replaced, or are on their way to become ready    Reconciling is True
 *   Waiting      a plan or a check decides when it goes on, or there is no zone  Reconciling is True
 *   Blocked      somebody has to do something                                    Stalled is True
 *   Paused       a user has paused it                                            none is True
 *
 * The phase of a group that is held is that of its hold: REASONS has the class of each (reconciler/model/decision.ts). A
 * group whose zones are all ready, and of which one cannot be scaled until somebody does something, is blocked.
 */
import { isSameJson } from "../../infra/json.ts";
import { MAX_ZONES } from "../model/refused-group.ts";
import { describeHolds, isRolledOut, shorten, whyOverdue } from "./holds.ts";
import type { GroupFacts, StatusInput } from "./facts.ts";
import { advanceProgress, estimateEnd, listSteps } from "./progress.ts";
import type {
  ConditionType,
  GroupCondition,
  GroupPhase,
  GroupProgress,
  RolloutGroupStatus,
  StoredHold,
} from "./status.ts";
import { countReconcile } from "./totals.ts";
import { describeZone, summarizeZones } from "./zones.ts";
import { factsOf } from "../model/decision.ts";
import { isSettledByStatus } from "../model/zone.ts";
import { stampCondition } from "../model/condition.ts";

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

interface Assessment {
  readonly phase: GroupPhase;
  readonly reason: string;
  readonly message: string;
}

/** After an error or a conflict, zones that are well by status stay ready if they were. */
function isGroupReady({ facts: { zones, state }, earlier }: StatusInput): boolean {
  if (zones.length === 0 || !zones.every(isSettledByStatus)) return false;
  const wasReady = earlier.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
  return state === "settled" || ((state === "failed" || state === "superseded") && wasReady);
}

/** Assesses the group for its conditions. `holds` and `progress` are the present ones. */
function assessGroup(
  input: StatusInput,
  holds: readonly StoredHold[],
  progress: GroupProgress | undefined,
): Assessment {
  const { facts } = input;
  if (facts.zones.length === 0)
    return { phase: "Waiting", reason: "NoZones", message: "no StatefulSet has the label rollout-group of this group" };
  if (isGroupReady(input)) {
    const blocking = holds.find(({ phase }) => phase === "Blocked");
    if (blocking) return { ...blocking, phase: "Blocked" };
    return { phase: "Ready", reason: "AllZonesUpdated", message: "all zones are updated and ready" };
  }
  return assessUnready(input, facts.hold || facts.state === "failed" ? holds[0] : undefined, progress);
}

/** `held`: the hold of its rollout, or the error. */
function assessUnready(
  input: StatusInput,
  held: StoredHold | undefined,
  progress: GroupProgress | undefined,
): Assessment {
  const { facts } = input;
  const message = sentenceOf(facts);
  const overdue = held && held.phase !== "Blocked" ? undefined : whyOverdue(input, progress);
  const isBlockedAnyway = facts.hold && factsOf(facts.hold.reason).phase === "Blocked";
  if (overdue !== undefined && !isBlockedAnyway)
    return { phase: "Blocked", reason: "ProgressDeadlineExceeded", message: `${overdue}: ${message}` };
  const going = isRolledOut(facts) && !facts.step ? "Waiting" : "RollingOut";
  return { phase: held?.phase ?? going, reason: reasonOf(facts), message };
}

/** The tick may have found a group settled whose statuses say otherwise. */
const sentenceOf = ({ state, message }: GroupFacts): string =>
  state === "settled" ? "the statuses of the zones are changing; the next tick decides again" : message;

function reasonOf({ state, hold, step }: GroupFacts): string {
  if (hold) return hold.reason;
  if (step) return step.action === "scaleZone" ? "ScalingZone" : "RollingOut";
  return state === "failed" ? "ReconcileFailed" : "GroupChanged";
}

function describeConditions({ earlier, ...times }: StatusInput, { phase, ...said }: Assessment): GroupCondition[] {
  const states: readonly (readonly [ConditionType, boolean])[] = [
    ["Ready", phase === "Ready"],
    ["Reconciling", phase === "RollingOut" || phase === "Waiting"],
    ["Stalled", phase === "Blocked"],
  ];
  const reason = said.reason;
  const message = shorten(said.message);
  return states.map(([type, isTrue]) => {
    const status = isTrue ? "True" : "False";
    return stampCondition({ type, status, reason, message }, { ...times, earlier: earlier.conditions });
  });
}
