/**
 * The conditions of a group, after kstatus
 * (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md), and its phase.
 *
 *   Ready        all zones are updated and ready, by the latest spec of each
 *   Reconciling  it is not, and Zonewise goes on by itself: now, or once what it waits for is there
 *   Stalled      it is not, and somebody has to look: a reason that somebody must fix, or no step for too long
 *
 * None of the last two is True for a group that a user has paused. A wait that a user has asked for does not stall.
 */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { factsOf, type Hold } from "../model/decision.ts";
import { isSettledByStatus } from "../model/zone.ts";
import { shorten } from "./blocks.ts";
import type { GroupFacts, StatusInput } from "./facts.ts";
import { stampCondition } from "../model/condition.ts";
import type { Block, ConditionType, GroupCondition, GroupPhase, GroupProgress } from "./status.ts";

export interface Assessment {
  readonly phase: GroupPhase;
  readonly ready: boolean;
  readonly stalled: boolean;
  readonly reason: string;
  readonly message: string;
}

/** After an error or a conflict, zones that are well by status stay ready if they were. */
export function isGroupReady({ facts: { zones, state }, earlier }: StatusInput): boolean {
  if (zones.length === 0 || !zones.every(isSettledByStatus)) return false;
  const wasReady = earlier.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
  return state === "settled" || ((state === "failed" || state === "superseded") && wasReady);
}

/** Assesses the group for its conditions. `blocks` and `progress` are the present ones. */
export function assessGroup(
  input: StatusInput,
  blocks: readonly Block[],
  progress: GroupProgress | undefined,
): Assessment {
  const { facts } = input;
  const message = sentenceOf(facts);
  if (facts.zones.length === 0)
    return assess("Empty", "NoZones", "no StatefulSet has the label rollout-group of this group");
  if (isGroupReady(input))
    return { ...assess("Ready", "AllZonesUpdated", "all zones are updated and ready"), ready: true };
  const { hold } = facts;
  if (hold && needsSomebody(hold)) return { ...assess("Stalled", hold.reason, hold.message), stalled: true };
  if (hold?.reason === "ZonePaused") return assess("Paused", hold.reason, hold.message);
  const overdue = hold && factsOf(hold.reason).requested ? undefined : whyOverdue(input, progress);
  if (overdue) return { ...assess("Stalled", "ProgressDeadlineExceeded", `${overdue}: ${message}`), stalled: true };
  return assess(phaseOf(input, blocks), reasonOf(input), message);
}

/** It goes on only once somebody has fixed something, whether or not the group counts as failed for that. */
function needsSomebody({ reason }: Hold): boolean {
  const { fails, needsFix } = factsOf(reason);
  return fails === true || needsFix === true;
}

/** The tick may have found a group settled whose statuses say otherwise. */
const sentenceOf = ({ state, message }: GroupFacts): string =>
  state === "settled" ? "the statuses of the zones are changing; the next tick decides again" : message;

const assess = (phase: GroupPhase, reason: string, message: string): Assessment => ({
  phase,
  ready: false,
  stalled: false,
  reason,
  message,
});

function whyOverdue({ now, deadlineMs }: StatusInput, progress: GroupProgress | undefined): string | undefined {
  const last = parseTimestamp(progress?.lastStepTime ?? "") ?? now;
  return now - last > deadlineMs ? `no step since ${formatTimestamp(last)}` : undefined;
}

function phaseOf({ facts, now }: StatusInput, [block]: readonly Block[]): GroupPhase {
  const { hold, step, remaining, zones } = facts;
  if (step) return step.action === "scaleZone" ? "Scaling" : "RollingOut";
  if (remaining.length === 0 && !zones.every(isSettledByStatus)) return "Degraded";
  return isOrdinary(hold, block, now) ? "RollingOut" : "Waiting";
}

/** Milliseconds for which an error counts as ordinary: most are over with the next tick. */
const ERROR_PATIENCE_MS = 30_000;

/** A hold that is ordinary progress becomes a wait once its patience is over, as its Event does. */
function isOrdinary(hold: Hold | undefined, block: Block | undefined, now: number): boolean {
  const heldMs = now - (parseTimestamp(block?.since ?? "") ?? now);
  return heldMs < (hold ? factsOf(hold.reason).patienceMs : ERROR_PATIENCE_MS);
}

function reasonOf({ facts: { state, hold, step } }: StatusInput): string {
  if (hold) return hold.reason;
  if (step) return step.action === "scaleZone" ? "ScalingZone" : "RollingOut";
  return state === "failed" ? "ReconcileFailed" : "GroupChanged";
}

export function describeConditions(
  { earlier, ...times }: StatusInput,
  { ready, stalled, phase, ...said }: Assessment,
): GroupCondition[] {
  const going = !ready && !stalled && phase !== "Paused" && phase !== "Empty";
  const states: readonly (readonly [ConditionType, boolean])[] = [
    ["Ready", ready],
    ["Reconciling", going],
    ["Stalled", stalled],
  ];
  const reason = said.reason;
  const message = shorten(said.message);
  return states.map(([type, isTrue]) => {
    const status = isTrue ? "True" : "False";
    return stampCondition({ type, status, reason, message }, { ...times, earlier: earlier.conditions });
  });
}
