/**
 * Plans the next step of every active node, and adopts nodes whose update is under way although they are not listed as
 * active.
 */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { goingBeforeReboot } from "./drainable.ts";
import { belongsTo, type Shadow, type UpdateNode } from "./node.ts";
import { decideProgress, type NodeStep } from "./progress.ts";
import { type ActiveNode, MAX_WAIT_TEXT } from "./policy.ts";
import type { PolicySnapshot } from "./snapshot.ts";
import { isIdle, PHASES, phaseOf } from "./state-machine.ts";

export interface ActiveStep {
  readonly entry: ActiveNode;
  /** Undefined if the node is gone. */
  readonly node: UpdateNode | undefined;
  readonly step: NodeStep;
}

/**
 * The next step of every active node, in the order of their starts. Nodes that proceed to their reboot count for the ones
 * after them.
 */
export function planActive(snapshot: PolicySnapshot): ActiveStep[] {
  const byName = new Map(snapshot.nodes.map((node) => [node.name, node]));
  const entries = [...snapshot.policy.status.active, ...adopt(snapshot)].map((stored) =>
    enterNow(stored, byName.get(stored.node), snapshot),
  );
  const going = [...goingBeforeReboot(entries.map(({ entry }) => entry))];
  return entries.map(({ entry, node }) => {
    const step = decideProgress({
      snapshot,
      entry,
      node,
      reading: snapshot.readings.get(entry.node),
      going: [...going],
    });
    if (step.step === "advance" && step.to === "RebootedIntoUpdate") going.push(entry);
    return { entry: step.step === "wait" ? waitFor(entry, step.why) : entry, node, step };
  });
}

/** Once both states are Idle, the phase of the entry is the last one. */
function enterNow(stored: ActiveNode, node: UpdateNode | undefined, { now }: PolicySnapshot): Omit<ActiveStep, "step"> {
  const phase = node ? phaseOf(node, stored) : stored.phase;
  return { entry: enterPhase(stored, phase === "Done" ? "Recovering" : phase, now), node };
}

function enterPhase(entry: ActiveNode, phase: ActiveNode["phase"], now: number): ActiveNode {
  // A time in the future was written by a clock that was ahead: the phase would never end.
  const isAhead = (parseTimestamp(entry.since) ?? now) > now;
  if (entry.phase === phase) return isAhead ? { ...entry, since: formatTimestamp(now) } : entry;
  const { waitsFor: _, ...rest } = entry;
  return { ...rest, phase, since: formatTimestamp(now) };
}

function waitFor(entry: ActiveNode, why: string): ActiveNode {
  const waitsFor = why.slice(0, MAX_WAIT_TEXT);
  return entry.waitsFor === waitsFor ? entry : { ...entry, waitsFor };
}

/**
 * Nodes that an earlier policy or controller started, or whose entry was lost. Nodes that were released are not
 * adopted. What has not rebooted goes back first: nobody knows whether a freeze stopped it (§17.2).
 */
function adopt({ policy, nodes, now }: PolicySnapshot): ActiveNode[] {
  const known = new Set([...policy.status.active, ...policy.status.deferred].map(({ node }) => node));
  return nodes.flatMap((node) => {
    const { shadow } = node;
    if (!shadow?.status || known.has(node.name) || !belongsTo(shadow, node)) return [];
    return isIdle(shadow) ? [] : [entryFor(node, shadow, now)];
  });
}

function entryFor(node: UpdateNode, shadow: Shadow, now: number): ActiveNode {
  const { spec, status } = shadow;
  const time = formatTimestamp(now);
  const from = status?.current_version ?? "";
  const entry: ActiveNode = {
    node: node.name,
    nodeUid: node.uid,
    from,
    to: spec.version ?? status?.target_version ?? from,
    ...(node.zone !== "" && { zone: node.zone }),
    bootId: firstBoot(node, shadow),
    startedAt: spec.state_transition_timestamp ?? time,
    phase: "Recovering",
    since: time,
  };
  const phase = phaseOf(node, entry);
  if (phase === "Done") return entry;
  if (PHASES[phase].disruption === "over") return { ...entry, phase };
  const message = `${node.name} was taken over in phase ${phase}: its update begins again`;
  return { ...entry, phase, ending: { reason: "TakenOver", message } };
}

/** The boot in which the update began, as far as it is known: until its reboot, it is the present boot of the node. */
function firstBoot({ bootId }: UpdateNode, { status }: Shadow): string {
  if (status?.rebooting) return status.rebooting.boot_id;
  return status?.current_state === "StagedAndPerformedUpdate" || status?.current_state === "Idle" ? bootId : "";
}
