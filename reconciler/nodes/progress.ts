/**
 * The next step of an active node: the first rule with an opinion (§17.2).
 *
 *   gone -> finished -> failed -> no longer managed -> given up -> frozen -> deadline -> precondition -> wait
 */
import { parseTimestamp } from "../../infra/timestamp.ts";
import { type Rule, firstOf } from "../../infra/rules.ts";
import { shortDuration } from "../../infra/duration.ts";
import { isInFuture } from "../checks/check.ts";
import type { UpdateNode } from "./node.ts";
import { startBlocker } from "./skip.ts";
import type { ActiveNode, Workload } from "./policy.ts";
import type { WantedState } from "./shadow.ts";
import {
  FAILURE_REASONS,
  type FailureReason,
  type GoingNode,
  type NodeReading,
  type PolicySnapshot,
} from "./snapshot.ts";
import {
  type Expiry,
  PHASES,
  type Precondition,
  deadlineOf,
  hasRebooted,
  isInReboot,
  moveFor,
  phaseOf,
} from "./state-machine.ts";
import { whyNoPlace } from "./drainable.ts";

export type NodeStep =
  /** Waits for the agent, or for the end of `why`. */
  | { readonly step: "wait"; readonly why: string }
  /** Its pods must be read. */
  | { readonly step: "read" }
  /** The next state is wanted. */
  | { readonly step: "advance"; readonly to: WantedState; readonly workloads?: readonly Workload[] | undefined }
  /** The write that starts the update is repeated: it is unknown whether it took effect. */
  | { readonly step: "startAgain" }
  /** The update is done: the slot is free. */
  | { readonly step: "done" }
  /** The attempt failed: Idle is wanted, and the slot is free once the node is back in service. */
  | (Ending & { readonly step: "reset"; readonly afterReboot: boolean })
  /** The slot is free, and the node goes to the end of the queue. */
  | (Ending & { readonly step: "release"; readonly backOff: boolean })
  /** The node is unusable: its slot stays taken, and nothing starts until a person allows it. */
  | (Ending & { readonly step: "freeze" });

interface Ending {
  readonly reason: FailureReason;
  readonly message: string;
}

interface NodeProgress {
  readonly snapshot: Pick<PolicySnapshot, "now" | "policy">;
  readonly entry: ActiveNode;
  readonly reading: NodeReading | undefined;
  /** Nodes that are being drained or reboot. */
  readonly going: readonly GoingNode[];
  /** Undefined if the node is gone. */
  readonly node: UpdateNode | undefined;
}

type ProgressRule = Rule<[NodeProgress, UpdateNode], NodeStep>;

/** True if the node is Ready and our own cordon is off; others may have cordoned it. */
const isInService = (node: UpdateNode): boolean => node.ready && node.cordonedBy === undefined;

/** Both states are Idle. */
const finished: ProgressRule = ({ entry }, node) => {
  if (phaseOf(node, entry) !== "Done" || node.cordonedBy !== undefined) return undefined;
  return node.shadow?.status?.current_version === entry.to ? { step: "done" } : failWithoutReboot(entry, node);
};

/**
 * An attempt that was given up ends with its own reason. Otherwise the agent counts its crashes itself: its back-off
 * is enough.
 */
function failWithoutReboot(entry: ActiveNode, node: UpdateNode): NodeStep {
  const ending = endingOf(entry);
  if (ending) return { step: "release", ...ending, backOff: false };
  const message =
    node.shadow?.status?.failure_reason ??
    `${entry.node} went back to Idle with ${node.shadow?.status?.current_version ?? "no version"}`;
  return { step: "release", reason: "UpdateFailed", message, backOff: false };
}

function endingOf({ ending }: ActiveNode): Ending | undefined {
  const reason = FAILURE_REASONS.find((known) => known === ending?.reason);
  return ending && reason && { reason, message: ending.message };
}

const failed: ProgressRule = ({ entry }, node) => {
  if (!node.shadow) return undefined;
  const { spec, status } = node.shadow;
  const move = moveFor(spec.state, status?.current_state);
  if (move.by !== "reconciler" || move.once !== "failed") return undefined;
  const afterReboot = hasRebooted(node, entry) || spec.state === "MonitoringUpdate";
  const message =
    status?.failure_reason ?? `it reports ${status?.current_state ?? "no state"}, and ${spec.state} is wanted`;
  return { step: "reset", reason: "UpdateFailed", message, afterReboot };
};

/** A node without the label has no agent that reports its return: it is enough that the node serves. */
const recovered: ProgressRule = ({ entry }, node) => {
  const isOver = (!node.shadow || node.shadow.spec.state === "Idle") && entry.phase === "Recovering";
  if (node.managed || !isOver || isInReboot(node) || !isInService(node)) return undefined;
  return {
    step: "release",
    reason: "NoLongerManaged",
    message: `${entry.node} has lost its label, and serves again`,
    backOff: false,
  };
};

/**
 * Its agent is gone with the label: it is reset at once, or as soon as the node is back from its reboot.
 */
const stillManaged: ProgressRule = ({ entry }, node) => {
  const { disruption } = PHASES[entry.phase];
  const isBefore = disruption === "ahead" || disruption === "draining";
  const isBack = hasRebooted(node, entry) && node.ready && !isInReboot(node);
  if (node.managed || entry.phase === "Recovering" || !(isBefore || isBack)) return undefined;
  return {
    step: "reset",
    reason: "NoLongerManaged",
    message: `${entry.node} has lost its label in phase ${entry.phase}`,
    afterReboot: false,
  };
};

/**
 * The update itself may be faulty: a node that has not begun to reboot is put back into service. One that is not Ready
 * stays cordoned.
 */
const notFrozen: ProgressRule = ({ snapshot: { policy }, entry }, node) => {
  const { frozen } = policy.status;
  if (!frozen || entry.phase !== "Draining" || !node.ready) return undefined;
  return { step: "reset", reason: "Frozen", message: `the policy is frozen: ${frozen.message}`, afterReboot: false };
};

/** An attempt that was given up goes back before its reboot. One that is away comes back first, and may finish. */
const goesOn: ProgressRule = ({ entry }, node) => {
  const ending = endingOf(entry);
  const isAway = hasRebooted(node, entry) || (isInReboot(node) && !node.ready);
  if (!ending || isAway || PHASES[entry.phase].disruption === "over") return undefined;
  return { step: "reset", ...ending, afterReboot: false };
};

const inTime: ProgressRule = ({ snapshot: { now, policy }, entry }, node) => {
  const seconds = deadlineOf(entry.phase, policy);
  if (now < (parseTimestamp(entry.since) ?? now) + seconds * 1000) return undefined;
  // A person decides about it. Until then its deadline does not count: the status says what the node waits for, and one
  // that has rebooted may finish.
  if (isFrozenFor(entry, policy)) return undefined;
  const why = (entry.phase === "Draining" ? describeDrain(node) : undefined) ?? entry.waitsFor;
  const message = `${entry.node} was in phase ${entry.phase} for ${shortDuration(seconds * 1000)}${why === undefined ? "" : `: ${why}`}`;
  return { ...expire(entry, node), reason: PHASES[entry.phase].timeout, message };
};

/** Pods that a message names. */
const MAX_NAMED = 3;

/** The pods that are left, and the reason that keeps each of them; undefined if the node API has recorded none. */
function describeDrain({ shadow }: UpdateNode): string | undefined {
  const { remaining = 0, blocked = [] } = shadow?.status?.drain ?? {};
  if (remaining === 0) return undefined;
  const named = blocked.slice(0, MAX_NAMED).map(({ namespace, name, reason, message }) => {
    return `${namespace}/${name} (${reason}${message === undefined ? "" : `: ${message}`})`;
  });
  return [remaining === 1 ? "1 pod is left" : `${remaining} pods are left`, ...named].join(", ");
}

/**
 * A node that is over its deadline frees its slot only if it is in service. A drain is reset first, as it has cordoned
 * its node.
 */
function expire({ phase }: ActiveNode, node: UpdateNode): Expiry {
  const { disruption, expiry } = PHASES[phase];
  const isUsable = disruption === "draining" ? node.ready : isInService(node);
  return isUsable ? expiry : { step: "freeze" };
}

/** True if this attempt has frozen the policy: a person decides. */
function isFrozenFor(entry: ActiveNode, { status }: PolicySnapshot["policy"]): boolean {
  return (
    status.frozen !== undefined &&
    status.failed.some(({ node, startedAt }) => node === entry.node && startedAt === entry.startedAt)
  );
}

/** A start whose answer was lost is repeated while the update is still to be made. */
const started: ProgressRule = ({ entry, snapshot }, { shadow }) => {
  if (entry.phase !== "Starting") return undefined;
  const isWanted = startBlocker(snapshot) === undefined && shadow?.status?.target_version === entry.to;
  return isWanted ? { step: "startAgain" } : { step: "wait", why: "its start is no longer wanted" };
};

/**
 * Why the node itself is not well yet: wrong boot or version, not Ready, or not for long enough. A quick reboot never
 * shows NotReady, so its time counts from the beginning of the phase and from the first report of its boot at the
 * earliest: one more reboot while it is monitored starts that time again.
 */
function whyNotReturned({ snapshot: { now, policy }, entry }: NodeProgress, node: UpdateNode): string | undefined {
  const { minReadySeconds } = policy.health;
  const { current_version: version = "nothing" } = node.shadow?.status ?? {};
  if (entry.bootId !== "" && node.bootId === entry.bootId) return "the node has not been rebooted";
  if (version !== entry.to) return `the node runs ${version}, not ${entry.to}`;
  if (!node.ready) return "the node is not Ready";
  return now < wellSince(node, entry, now) + minReadySeconds * 1000
    ? `the node must be Ready for ${minReadySeconds} s`
    : undefined;
}

/** Milliseconds. A time that is ahead is that of a host that became Ready before its clock was set: it does not count. */
function wellSince({ shadow, readySince = 0 }: UpdateNode, { since }: ActiveNode, now: number): number {
  const reported = parseTimestamp(shadow?.status?.boot_reported_at ?? "") ?? 0;
  const past = [readySince, reported].filter((at) => !isInFuture(at, now));
  return Math.max(parseTimestamp(since) ?? 0, ...past);
}

const waitFor = (why: string | undefined): NodeStep | undefined =>
  why === undefined ? undefined : { step: "wait", why };

/** The preconditions of the next wanted state (§17.3): each waits, or has the pods read first, or has no opinion. */
const PRECONDITIONS: Readonly<Record<Precondition, ProgressRule>> = {
  drainable({ snapshot: { policy }, reading, going }, node) {
    if (policy.status.frozen) return waitFor(`the policy is frozen: ${policy.status.frozen.message}`);
    if (!node.ready) return waitFor("the node is not Ready");
    if (node.terminating || node.removedBy !== undefined) return waitFor("the node is being removed");
    if (!reading) return { step: "read" };
    return waitFor(reading.rollout ?? reading.obstacle ?? whyNoPlace(node, reading, { going, policy })?.message);
  },
  ready: (_facts, node) => (node.ready ? undefined : waitFor("the node is not Ready")),
  healthy: (progress, node) =>
    waitFor(whyNotReturned(progress, node)) ??
    (progress.reading ? waitFor(progress.reading.missing) : { step: "read" }),
};

const preconditionHolds: ProgressRule = (progress, node) => {
  if (!node.shadow) return undefined;
  const { spec, status } = node.shadow;
  const move = moveFor(spec.state, status?.current_state);
  if (move.by !== "reconciler" || move.once === "chosen" || move.once === "failed") return undefined;
  const advance: NodeStep = { step: "advance", to: move.to, workloads: progress.reading?.workloads };
  return PRECONDITIONS[move.once](progress, node) ?? advance;
};

const forAgent: ProgressRule = ({ entry }, node) => ({
  step: "wait",
  why: node.cordonedBy && entry.phase === "Recovering" ? "uncordoning" : "its agent",
});

const decide = firstOf<[NodeProgress, UpdateNode], NodeStep>([
  finished,
  failed,
  recovered,
  stillManaged,
  goesOn,
  notFrozen,
  inTime,
  started,
  preconditionHolds,
  forAgent,
]);

/** The next step of an active node; a node that is gone leaves its slot. */
export function decideProgress(progress: NodeProgress): NodeStep {
  const { entry, node } = progress;
  if (!node || node.uid !== entry.nodeUid)
    return { step: "release", reason: "NodeGone", message: `node ${entry.node} is gone`, backOff: false };
  return decide(progress, node) ?? { step: "wait", why: "its agent" };
}
