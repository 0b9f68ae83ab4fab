/**
 * Why a policy starts nothing, and why a node that has an update does not start: the first rule with an
 * opinion.
 */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { type Rule, firstOf } from "../../infra/rules.ts";
import { type UpdateNode, belongsTo } from "./node.ts";
import type { Campaign } from "./policy.ts";
import type { NodeReading, PolicySnapshot, SkipReason, Why } from "./snapshot.ts";
import { isIdle } from "./state-machine.ts";
import { type Window, endOf, isWithin, lastOccurrence } from "../model/window.ts";

/** Why a policy starts nothing at all: the first reason. */
export function startBlocker({ now, policy }: Pick<PolicySnapshot, "now" | "policy">): Why | undefined {
  const { enabled, problem, window, status } = policy;
  const { frozen } = status;
  if (problem !== undefined) return { reason: "PolicyInvalid", message: problem };
  if (!enabled) return { reason: "Disabled", message: "updates are switched off" };
  if (frozen)
    return {
      reason: "Frozen",
      message: `frozen since ${frozen.at}: ${frozen.message}; to resume, set spec.unfreeze: ${frozen.id}`,
    };
  return isWindowOpen(window, status.campaign, now).open
    ? undefined
    : { reason: "WindowClosed", message: "outside the window" };
}

type SkipRule = Rule<[UpdateNode, PolicySnapshot], Why>;

const skip = (reason: SkipReason, message: string): Why => ({ reason, message });

const stays: SkipRule = (node) => {
  const { terminating, removedBy } = node;
  if (terminating) return skip("NodeTerminating", "the node is being deleted");
  if (removedBy !== undefined) return skip("BeingRemoved", `the node has taint ${removedBy}`);
  return node.managed ? undefined : skip("NotManaged", "the node has lost its label");
};

const reported: SkipRule = (node) => {
  const { shadow } = node;
  if (!shadow || shadow.terminating || !belongsTo(shadow, node))
    return skip("AgentSilent", "the node has no shadow of its own yet");
  if (shadow.problem !== undefined)
    return skip("ShadowUnreadable", `shadow ${shadow.name} cannot be read: ${shadow.problem}`);
  return shadow.status ? undefined : skip("AgentSilent", "its agent has not reported yet");
};

const recovered: SkipRule = ({ shadow, cordonedBy }) => {
  if (!shadow || !isIdle(shadow))
    return skip("Recovering", `it is on its way back to Idle from ${shadow?.status?.current_state}`);
  return cordonedBy === undefined ? undefined : skip("Recovering", "our own cordon has not been removed yet");
};

/** The agent's own count of failures. */
const backOffOver: SkipRule = ({ shadow }, { now }) => {
  const { crash_count = 0, state_transition_failure_timestamp: at } = shadow?.status ?? {};
  const failedAt = parseTimestamp(at ?? "");
  const isOver = failedAt === undefined || isBackOffOver(now - failedAt, crash_count);
  return isOver ? undefined : skip("BackOff", `attempt ${crash_count} failed at ${at}`);
};

/** Our count of attempts that did not come to an end. */
const notDeferred: SkipRule = ({ name }, { now, policy }) => {
  const deferred = policy.status.deferred.find(({ node }) => node === name);
  const isWaiting =
    deferred && deferred.count > 0 && !isBackOffOver(now - (parseTimestamp(deferred.at) ?? now), deferred.count);
  if (!isWaiting) return undefined;
  const { reason, at, count, message } = deferred;
  return skip("Deferred", `${reason} at ${at}, attempt ${count}${message === undefined ? "" : `: ${message}`}`);
};

const isReady: SkipRule = ({ ready }) => (ready ? undefined : skip("NodeNotReady", "the node is not Ready"));

/** Why the node does not start, as far as its pods need not be read. */
export const whySkipped = firstOf<[UpdateNode, PolicySnapshot], Why>([
  stays,
  reported,
  recovered,
  backOffOver,
  notDeferred,
  isReady,
]);

/** Why its pods forbid a start, whatever other nodes do. */
export const whySkippedByPods = firstOf<[NodeReading], Why>([
  ({ unfit }) => (unfit === undefined ? undefined : skip("UnhealthyPods", unfit)),
  ({ rollout }) => (rollout === undefined ? undefined : skip("RolloutInProgress", rollout)),
  ({ obstacle }) => (obstacle === undefined ? undefined : skip("DrainBlocked", obstacle)),
]);

/** True if the host has chosen another version than the one that runs: a lower one counts as well. */
export function hasUpdate({ shadow }: UpdateNode): boolean {
  const status = shadow?.status;
  return status !== undefined && status.target_version !== status.current_version;
}

const MINUTE_MS = 60_000;
const MAX_MINUTES = 1440;
/** 2^11 minutes exceed a day. */
const MAX_EXPONENT = 11;

/**
 * True if an attempt is allowed `sinceMs` milliseconds after the last of `count` failures. Whole minutes count. A
 * negative time comes from a clock that was ahead; a time of more than a day holds nothing (§17.7).
 */
export function isBackOffOver(sinceMs: number, count: number): boolean {
  const minutes = Math.trunc(sinceMs / MINUTE_MS);
  return Math.abs(minutes) > MAX_MINUTES || minutes > 2 ** Math.min(count, MAX_EXPONENT);
}

interface Opening {
  readonly open: boolean;
  /** To remember; undefined for a windowed expression. */
  readonly campaign: Campaign | undefined;
}

/**
 * Decides whether updates may start at `now` (milliseconds). `campaign` is the remembered one: without it, or with
 * another expression, a one-shot waits for its next occurrence.
 */
export function isWindowOpen(window: Window | undefined, campaign: Campaign | undefined, now: number): Opening {
  if (!window) return { open: true, campaign: undefined };
  return window.kind === "windowed"
    ? { open: isWithin(window, now), campaign: undefined }
    : judgeCampaign(window, campaign, now);
}

function judgeCampaign(window: Window, campaign: Campaign | undefined, now: number): Opening {
  const { cron, timeZone } = window;
  if (campaign?.cron !== cron || campaign.timeZone !== timeZone)
    return { open: false, campaign: { cron, timeZone, handledThrough: formatTimestamp(now) } };
  const fired = lastOccurrence(window, now);
  const handled = parseTimestamp(campaign.handledThrough) ?? now;
  // The clock was ahead for a moment.
  if (handled > now) return { open: false, campaign: { ...campaign, handledThrough: formatTimestamp(now) } };
  return { open: fired !== undefined && fired > handled && now < endOf(window, fired), campaign };
}

/** The campaign once no node is left to be updated in it: the next occurrence opens it again. */
export function closeCampaign(campaign: Campaign | undefined, now: number): Campaign | undefined {
  return campaign && { ...campaign, handledThrough: formatTimestamp(now) };
}
