/**
 * Plans one pass over the nodes of a policy (gather -> decide -> act):
 *
 *   a person's unfreeze -> steps of the active nodes -> failures and freeze -> window -> starts -> status
 *
 * The status is written first, with the policy's resourceVersion: it takes the slots. Then the shadows are written
 * (§17.1).
 */
import { formatTimestamp } from "../../infra/timestamp.ts";
import type { PlannedCheck } from "../checks/result.ts";
import { goingBeforeStart } from "./drainable.ts";
import type { Shadow, UpdateNode } from "./node.ts";
import { planActive, type ActiveStep } from "./plan-active.ts";
import { type PlannedStarts, type Starts, planStarts } from "./plan-starts.ts";
import type { ActiveNode, PolicyStatus } from "./policy-status.ts";
import { recordSteps, type RecordsStatus, unfreeze } from "./records.ts";
import { addAnswers, currentChecks, dueChecks, formatChecks, type StartChecks, whyChecksHold } from "./start-checks.ts";
import { DEFAULT_SPEC, type ShadowSpec } from "./shadow.ts";
import type { PolicySnapshot, Skip, SkipReason } from "./snapshot.ts";
import { isAtRest } from "./state-machine.ts";
import { type Opening, closeCampaign, hasUpdate, isWindowOpen, startBlocker } from "./skip.ts";

/** A change of a shadow's spec. */
export interface ShadowWrite {
  readonly node: UpdateNode;
  readonly spec: ShadowSpec;
}

export interface NodePlan {
  /** To be written first, if it differs from the stored one. */
  readonly status: PolicyStatus;
  readonly writes: readonly ShadowWrite[];
  readonly steps: readonly ActiveStep[];
  readonly started: readonly UpdateNode[];
  readonly skips: readonly Skip[];
  /** Nodes whose pods must be read: then the pass is planned again. */
  readonly toRead: readonly string[];
  /** Checks to ask: then the pass is planned again with their answers. */
  readonly due: readonly PlannedCheck[];
}

/** Plans a pass; the same snapshot always gives the same plan. */
export function planPass(input: PolicySnapshot): NodePlan {
  const released = unfreeze(input);
  const snapshot = { ...input, policy: { ...input.policy, status: released } };
  const { now, policy } = snapshot;
  const { steps, records } = planSteps(snapshot);
  const busy = new Set(records.active.map(({ node }) => node));
  const idle = snapshot.nodes.filter(({ name }) => !busy.has(name));
  const opening = isWindowOpen(policy.window, policy.status.campaign, now);
  const after = { ...snapshot, policy: { ...policy, status: { ...policy.status, ...records } } };
  const closed = startBlocker(after);
  const activeZones = [...new Set(records.active.map(({ zone = "" }) => zone))];
  const judged = judgeChecks(snapshot, steps);
  const starts = planStarts(
    idle,
    {
      activeZones,
      closed,
      held: judged.held,
      going: goingBeforeStart([...records.active, ...(snapshot.others ?? [])]),
    },
    after,
  );
  const toRead = [...steps.flatMap(({ step }) => (step.step === "read" ? step.nodes : [])), ...starts.toRead];
  const active = [...records.active, ...starts.nodes.map((node) => startOf(node, now))];
  const status = planStatus(
    { ...policy.status, ...records, active },
    { snapshot, opening, closed, judged, starts, toRead },
  );
  const due = judged.checks && starts.couldStart ? dueChecks(policy, judged.checks, now) : [];
  return {
    status,
    steps,
    due,
    started: starts.nodes,
    skips: starts.skips,
    toRead,
    writes: planWrites({ steps, starts, idle }, snapshot),
  };
}

/**
 * The steps of the active nodes, and their records. A freeze applies from the pass in which it begins: no other node
 * goes on to its reboot.
 */
function planSteps(snapshot: PolicySnapshot): {
  readonly steps: readonly ActiveStep[];
  readonly records: RecordsStatus;
} {
  const steps = planActive(snapshot);
  const records = recordSteps(steps, snapshot);
  const { policy } = snapshot;
  if (!records.frozen || policy.status.frozen) return { steps, records };
  const again = planActive({
    ...snapshot,
    policy: { ...policy, status: { ...policy.status, frozen: records.frozen } },
  });
  return { steps: again, records: recordSteps(again, snapshot) };
}

/**
 * Reasons that do not end by themselves, or that may end at any time: if a one-shot waited for them, later updates
 * could start at any time.
 */
const PERMANENT_SKIPS: ReadonlySet<SkipReason> = new Set([
  "NotManaged",
  "SeveralPolicies",
  "ShadowUnreadable",
  "NodeTerminating",
  "BeingRemoved",
  "AgentSilent",
  "NodeNotReady",
  "NoPlaceForPods",
]);

interface JudgedChecks {
  readonly checks: StartChecks | undefined;
  readonly held: Omit<Skip, "node"> | undefined;
}

const NO_CHECKS: JudgedChecks = { checks: undefined, held: undefined };

/** The results of the checks with the answers that have come, and the reason why they hold starts. */
function judgeChecks({ now, policy, answers = new Map() }: PolicySnapshot, steps: readonly ActiveStep[]): JudgedChecks {
  const current = currentChecks(policy, now, steps.some(endsAttempt));
  if (!current) return NO_CHECKS;
  const checks = addAnswers(policy, current, answers);
  return { checks, held: whyChecksHold(policy, checks, now) };
}

/** A one-shot is over once no node can start or will be able to soon. */
const isExhausted = ({ skips }: Starts): boolean => skips.every(({ reason }) => PERMANENT_SKIPS.has(reason));

function startOf({ name, uid, zone, bootId, shadow }: UpdateNode, now: number): ActiveNode {
  const time = formatTimestamp(now);
  const { current_version: from = "", target_version: to = "" } = shadow?.status ?? {};
  const entry = {
    node: name,
    nodeUid: uid,
    shadowUid: shadow?.uid ?? "",
    from,
    to,
    bootId,
    startedAt: time,
    since: time,
  };
  return { ...entry, ...(zone !== "" && { zone }), phase: "Starting" };
}

interface Planned {
  readonly steps: readonly ActiveStep[];
  readonly starts: Starts;
  readonly idle: readonly UpdateNode[];
}

function planWrites({ steps, starts, idle }: Planned, { now, policy, contested }: PolicySnapshot): ShadowWrite[] {
  const time = formatTimestamp(now);
  const wish = (
    node: UpdateNode,
    state: ShadowSpec["state"],
    version = node.shadow?.spec.version ?? null,
  ): ShadowWrite => ({
    node,
    spec: { state, state_transition_timestamp: time, version },
  });
  const start = (node: UpdateNode): ShadowWrite =>
    wish(node, "StagedAndPerformedUpdate", node.shadow?.status?.target_version ?? null);
  const ofActive = steps.flatMap(({ step, node }) => {
    if (!node?.shadow) return [];
    if (step.step === "advance") return [wish(node, step.to)];
    if (step.step === "startAgain") return [start(node)];
    return isEnding(step.step) && node.shadow.spec.state !== "Idle" ? [wish(node, "Idle")] : [];
  });
  const starting = new Set(starts.nodes.map(({ name }) => name));
  const stepped = new Set(steps.map(({ entry }) => entry.node));
  const isOurs = ({ name }: UpdateNode): boolean => (contested.get(name)?.[0] ?? policy.name) === policy.name;
  const others = idle
    .filter((node) => !starting.has(node.name) && !stepped.has(node.name) && isOurs(node))
    .flatMap((node) => tidy(node, wish));
  return [...ofActive, ...starts.nodes.map(start), ...others];
}

interface Outcome extends Pick<NodePlan, "toRead"> {
  readonly snapshot: PolicySnapshot;
  readonly opening: Opening;
  readonly closed: Omit<Skip, "node"> | undefined;
  readonly judged: JudgedChecks;
  readonly starts: PlannedStarts;
}

function planStatus(
  status: PolicyStatus,
  { snapshot, opening, closed, judged, starts, toRead }: Outcome,
): PolicyStatus {
  const isOver = [status.active, toRead, starts.nodes].every(({ length }) => length === 0) && isExhausted(starts);
  const { checks, held } = starts.couldStart ? judged : NO_CHECKS;
  return summarize({
    snapshot,
    skips: starts.skips,
    status: {
      ...status,
      checks: formatChecks(checks),
      zone: status.active[0]?.zone ?? status.zone,
      windowOpen: opening.open,
      campaign: opening.open && isOver ? closeCampaign(opening.campaign, snapshot.now) : opening.campaign,
      message: (closed ?? held)?.message ?? "",
    },
  });
}

/** True if the attempt ends with this step: the checks then begin again, as they see its effect only from now on. */
const endsAttempt = ({ step: { step } }: ActiveStep): boolean => step === "done" || isEnding(step) || step === "freeze";

const isEnding = (step: string): boolean => step === "reset" || step === "release";

/**
 * A node that is not active wants no update. The rest of an update is removed from its shadow once there is nothing to
 * do.
 */
function tidy(node: UpdateNode, wish: (node: UpdateNode, state: "Idle") => ShadowWrite): ShadowWrite[] {
  const { shadow } = node;
  if (!shadow || shadow.terminating || shadow.problem !== undefined) return [];
  if (shadow.spec.state !== "Idle") return [wish(node, "Idle")];
  const hasNothingToDo = !shadow.status || (isAtRest(shadow) && !hasUpdate(node));
  return isLeftover(shadow) && hasNothingToDo ? [{ node, spec: DEFAULT_SPEC }] : [];
}

const isLeftover = ({ spec }: Shadow): boolean =>
  (spec.version ?? spec.state_transition_timestamp ?? undefined) !== undefined;

/** Nodes that are listed with the reason why they wait; all are counted. */
const MAX_LISTED = 50;

interface Summary {
  readonly snapshot: Pick<PolicySnapshot, "nodes" | "policy">;
  readonly skips: readonly Skip[];
  readonly status: PolicyStatus;
}

/** The status with its counts and its list of waiting nodes: the part that people and metrics read. */
function summarize({ snapshot: { nodes, policy }, skips, status }: Summary): PolicyStatus {
  const skipped: Record<string, number> = {};
  for (const { reason } of skips) skipped[reason] = (skipped[reason] ?? 0) + 1;
  const active = new Set(status.active.map(({ node }) => node));
  const upToDate = nodes.filter((node) => !active.has(node.name) && node.shadow?.status && !hasUpdate(node)).length;
  return {
    ...status,
    observedGeneration: policy.generation,
    nodes: { total: nodes.length, upToDate, waiting: skips.length, active: active.size, failed: status.failed.length },
    skipped: Object.fromEntries(Object.entries(skipped).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    waiting: skips.slice(0, MAX_LISTED).map(({ node, reason, message }) => ({ node, reason, message })),
  };
}
