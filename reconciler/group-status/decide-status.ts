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
import type { GroupFacts, StatusInput } from "./facts.ts";
import { advanceProgress, countReconcile, estimateEnd, listSteps } from "./progress.ts";
import type {
  ConditionType,
  GroupCondition,
  GroupPhase,
  GroupProgress,
  RolloutGroupStatus,
  StoredHold,
} from "./status.ts";
import { describeZone, summarizeZones } from "./zones.ts";
import { factsOf, dedupKeyOf, ERROR_BLOCKS_AFTER_MS, type Hold, phaseOfHold } from "../model/decision.ts";
import { isSettledByStatus } from "../model/zone.ts";
import { stampCondition } from "../../infra/kubernetes/condition.ts";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";

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

// The holds of a group as its status stores them: why its rollout waits, then why zones are not scaled.

const MAX_MESSAGE_LENGTH = 1000;
const MAX_OBJECTS = 10;
const MAX_HOLDS = 20;

const shorten = (message: string): string =>
  message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH - 1)}…` : message;

/** The rollout's hold first. A cause that was there before keeps its time. */
export function describeHolds(input: StatusInput, progress: GroupProgress | undefined): StoredHold[] {
  const { facts, earlier, now } = input;
  const known = new Map((earlier.holds ?? []).map(({ cause, since }) => [cause, since]));
  const sinceOf = (cause: string): string => known.get(cause) ?? formatTimestamp(now);
  const error = facts.state === "failed" ? [describeError(input, progress, sinceOf)] : [];
  const all = [...(facts.hold ? [facts.hold] : []), ...facts.scalingHolds];
  const holds = all.map((hold): StoredHold => {
    const cause = shorten(dedupKeyOf(hold));
    const since = sinceOf(cause);
    const { kind, name } = hold.culprit ?? findObject(hold) ?? {};
    return {
      reason: hold.reason,
      phase: phaseOf(hold, { input, progress, since }),
      message: shorten(hold.message),
      cause,
      objects: hold.objects.slice(0, MAX_OBJECTS).map((one) => ({ kind: one.kind, name: one.name })),
      ...(kind !== undefined && name !== undefined && { waitsFor: { kind, name } }),
      since,
      ...(hold.until !== undefined && { nextCheck: formatTimestamp(hold.until) }),
    };
  });
  return [...error, ...holds].slice(0, MAX_HOLDS);
}

/** An error is no hold, but the group does not continue either. */
function describeError(
  input: StatusInput,
  progress: GroupProgress | undefined,
  sinceOf: (cause: string) => string,
): StoredHold {
  const cause = "ReconcileFailed";
  const since = sinceOf(cause);
  const isBlocked = input.now - (parseTimestamp(since) ?? input.now) >= ERROR_BLOCKS_AFTER_MS;
  const phase =
    isBlocked || whyOverdue(input, progress) !== undefined ? "Blocked" : ordinary("RollingOut", input.facts);
  return { reason: cause, phase, message: shorten(input.facts.message), cause, objects: [], since };
}

interface Held {
  readonly input: StatusInput;
  readonly progress: GroupProgress | undefined;
  readonly since: string;
}

/** The deadline is that of the rollout: scaling has none. */
function phaseOf(hold: Hold, { input, progress, since }: Held): StoredHold["phase"] {
  const { facts, now } = input;
  const phase = phaseOfHold(hold, { heldMs: now - (parseTimestamp(since) ?? now), now });
  const isOverdue = hold === facts.hold && !factsOf(hold.reason).requested && whyOverdue(input, progress) !== undefined;
  if (isOverdue) return "Blocked";
  return hold === facts.hold ? ordinary(phase, facts) : ordinary(phase, undefined);
}

/** Nothing rolls out where zones are only to be scaled, or where pods of a finished rollout are not ready. */
const ordinary = (phase: StoredHold["phase"], facts: GroupFacts | undefined): StoredHold["phase"] =>
  phase === "RollingOut" && (!facts || isRolledOut(facts)) ? "Waiting" : phase;

/** True if there is nothing to roll out, though not all pods may be ready. */
const isRolledOut = ({ remaining, zones }: GroupFacts): boolean =>
  remaining.length === 0 && !zones.every(isSettledByStatus);

/** True of the clause that no step was made for longer than the deadline. */
function whyOverdue({ now, deadlineMs }: StatusInput, progress: GroupProgress | undefined): string | undefined {
  const last = parseTimestamp(progress?.lastStepTime ?? "") ?? now;
  return now - last > deadlineMs ? `no step since ${formatTimestamp(last)}` : undefined;
}

/** A gate or a budget rather than the StatefulSet that waits for it. */
const findObject = ({ objects }: Hold): Hold["objects"][number] | undefined =>
  objects.find(({ kind }) => kind === "RolloutGate" || kind === "ZoneAwarePodDisruptionBudget") ?? objects[0];
