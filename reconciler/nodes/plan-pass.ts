/**
 * Plans one pass over the nodes (gather -> decide -> act):
 *
 *   a person's unfreeze -> steps of the active nodes -> failures and freeze -> window -> starts -> status
 *
 * The status is written first, with the policy's resourceVersion: it takes the slots. Then the shadows are written
 * (§17.1).
 */
import { formatTimestamp } from "../../infra/timestamp.ts";
import { moveToFront } from "../model/order.ts";
import type { Shadow, UpdateNode } from "./node.ts";
import { planActive, type ActiveStep } from "./plan-active.ts";
import { planStarts } from "./plan-starts.ts";
import type { ActiveNode, PolicyStatus } from "./policy.ts";
import { recordSteps, type RecordsStatus, unfreeze } from "./records.ts";
import { DEFAULT_SPEC, type ShadowSpec } from "./shadow.ts";
import type { PolicySnapshot, Skip, SkipReason } from "./snapshot.ts";
import { isIdle } from "./state-machine.ts";
import { closeCampaign, hasUpdate, isWindowOpen } from "./skip.ts";

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
  readonly skips: readonly Skip[];
  /** Nodes whose pods must be read: then the pass is planned again. */
  readonly toRead: readonly string[];
}

/** Plans a pass; the same snapshot always gives the same plan. */
export function planPass(stored: PolicySnapshot): NodePlan {
  const { now } = stored;
  const snapshot = withStatus(stored, unfreeze(stored));
  const { window, status } = snapshot.policy;
  const { steps, records } = planSteps(snapshot);
  const after = withStatus(snapshot, { ...status, ...records });
  const starts = planStarts(after);
  const active = [...records.active, ...starts.nodes.map((node) => startOf(node, now))];
  const toRead = [...steps.flatMap(({ step, entry }) => (step.step === "read" ? entry.node : [])), ...starts.toRead];
  const opening = isWindowOpen(window, status.campaign, now);
  const isOver = active.length + toRead.length === 0 && starts.skips.every(({ reason }) => PERMANENT_SKIPS.has(reason));
  return {
    steps,
    toRead,
    skips: starts.skips,
    writes: planWrites(after, steps, starts.nodes),
    status: {
      ...after.policy.status,
      ...countNodes(after, active, starts.skips),
      active,
      zone: active[0]?.zone ?? status.zone,
      campaign: opening.open && isOver ? closeCampaign(opening.campaign, now) : opening.campaign,
      message: starts.message,
    },
  };
}

const withStatus = (snapshot: PolicySnapshot, status: PolicyStatus): PolicySnapshot => ({
  ...snapshot,
  policy: { ...snapshot.policy, status },
});

/**
 * The steps of the active nodes, and their records. A freeze applies from the pass in which it begins: no other node
 * proceeds to its reboot.
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
 * could start at any time. It is over once no node can start or will be able to soon.
 */
const PERMANENT_SKIPS: ReadonlySet<SkipReason> = new Set([
  "NotManaged",
  "ShadowUnreadable",
  "NodeTerminating",
  "BeingRemoved",
  "AgentSilent",
  "NodeNotReady",
  "NoPlaceForPods",
]);

function startOf({ name, uid, zone, bootId, shadow }: UpdateNode, now: number): ActiveNode {
  const time = formatTimestamp(now);
  const { current_version: from = "", target_version: to = "" } = shadow?.status ?? {};
  const entry = {
    node: name,
    nodeUid: uid,
    from,
    to,
    bootId,
    startedAt: time,
    since: time,
  };
  return { ...entry, ...(zone !== "" && { zone }), phase: "Starting" };
}

function planWrites(
  { now, nodes }: PolicySnapshot,
  steps: readonly ActiveStep[],
  started: readonly UpdateNode[],
): ShadowWrite[] {
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
  const written = new Set([...started.map(({ name }) => name), ...steps.map(({ entry }) => entry.node)]);
  const others = nodes.filter(({ name }) => !written.has(name)).flatMap((node) => tidy(node, wish));
  return [...ofActive, ...started.map(start), ...others];
}

const isEnding = (step: string): boolean => step === "reset" || step === "release";

/**
 * A node that is not active wants no update. The rest of an update is removed from its shadow once there is nothing to
 * do.
 */
function tidy(node: UpdateNode, wish: (node: UpdateNode, state: "Idle") => ShadowWrite): ShadowWrite[] {
  const { shadow } = node;
  if (!shadow || shadow.terminating || shadow.problem !== undefined) return [];
  if (shadow.spec.state !== "Idle") return [wish(node, "Idle")];
  const hasNothingToDo = !shadow.status || (isIdle(shadow) && !hasUpdate(node));
  return isLeftover(shadow) && hasNothingToDo ? [{ node, spec: DEFAULT_SPEC }] : [];
}

const isLeftover = ({ spec }: Shadow): boolean =>
  (spec.version ?? spec.state_transition_timestamp ?? undefined) !== undefined;

/** Nodes that are listed with the reason why they wait; all are counted. */
const MAX_LISTED = 50;

/** Reasons that a person may have to end: of a large fleet, these nodes are listed first. */
const FOR_PEOPLE: ReadonlySet<SkipReason> = new Set([...PERMANENT_SKIPS, "UnhealthyPods", "DrainBlocked"]);

/** The counts and the list of waiting nodes: the part that people and metrics read. */
function countNodes({ nodes, policy }: PolicySnapshot, active: readonly ActiveNode[], skips: readonly Skip[]) {
  const skipped: Record<string, number> = {};
  for (const { reason } of skips) skipped[reason] = (skipped[reason] ?? 0) + 1;
  const busy = new Set(active.map(({ node }) => node));
  const upToDate = nodes.filter((node) => !busy.has(node.name) && node.shadow?.status && !hasUpdate(node)).length;
  const { failed } = policy.status;
  return {
    observedGeneration: policy.generation,
    nodes: { total: nodes.length, upToDate, waiting: skips.length, active: busy.size, failed: failed.length },
    skipped: Object.fromEntries(Object.entries(skipped).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    waiting: moveToFront(skips, ({ reason }) => FOR_PEOPLE.has(reason)).slice(0, MAX_LISTED),
  };
}
