/**
 * Chooses the nodes that start now: zone after zone, those without failures first, as many as there are free slots.
 */
import { moveToFront } from "../model/order.ts";
import { goingBeforeStart, whyNoPlace } from "./drainable.ts";
import type { UpdateNode } from "./node.ts";
import { hasUpdate, startBlocker, whySkipped, whySkippedByPods } from "./skip.ts";
import type { GoingNode, PolicySnapshot, Skip, Why } from "./snapshot.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import { allowedActive, RELEASED } from "./policy.ts";
import { isIdle, isInReboot } from "./state-machine.ts";

interface Starts {
  readonly nodes: readonly UpdateNode[];
  /** Every node with an update that does not start, other than those that are open until pods are read. */
  readonly skips: readonly Skip[];
  /** Nodes whose pods must be read before more is known. */
  readonly toRead: readonly string[];
}

interface PlannedStarts extends Starts {
  /** Why nothing starts at all, in a sentence; empty if it may. */
  readonly message: string;
}

/** Chooses among the nodes that are not active in `policy.status`. */
export function planStarts(snapshot: PolicySnapshot): PlannedStarts {
  const { candidates, skips } = findCandidates(snapshot);
  const closed = startBlocker(snapshot);
  const chosen: Starts = closed
    ? { nodes: [], toRead: [], skips: candidates.map(({ name }) => ({ node: name, ...closed })) }
    : chooseByZone(candidates, countSlots(snapshot), snapshot);
  return { ...chosen, skips: [...skips, ...chosen.skips], message: closed?.message ?? "" };
}

/** The nodes that could start as far as their pods need not be read, in the order of starts, and why others do not. */
function findCandidates(snapshot: PolicySnapshot) {
  const busy = new Set(snapshot.policy.status.active.map(({ node }) => node));
  const idle = snapshot.nodes.filter((node) => !busy.has(node.name) && (hasUpdate(node) || !node.shadow?.status));
  const skips = new Map(idle.map((node) => [node.name, whySkipped(node, snapshot)]));
  return {
    candidates: sortCandidates(
      idle.filter(({ name }) => skips.get(name) === undefined),
      snapshot,
    ),
    skips: [...skips].flatMap(([node, why]) => (why ? [{ node, ...why }] : [])),
  };
}

/**
 * The order of starts: fewest failures first, then those that were not sent back, then by name; the controller's own
 * node last.
 */
function sortCandidates(nodes: readonly UpdateNode[], { policy, ownNode }: PolicySnapshot): UpdateNode[] {
  const sentBackAt = new Map(policy.status.deferred.map(({ node, at }) => [node, at]));
  const keyOf = ({ name, shadow }: UpdateNode): readonly [number, number, string, string] => [
    name === ownNode ? 1 : 0,
    shadow?.status?.crash_count ?? 0,
    sentBackAt.get(name) ?? "",
    name,
  ];
  return nodes.toSorted((a, b) => compareKeys(keyOf(a), keyOf(b)));
}

function compareKeys(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  for (const [index, left] of a.entries()) {
    const right = b[index] ?? "";
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

/**
 * Nodes of one zone only: that of the active ones, otherwise the current one, otherwise the first one in which a node
 * can start. In order, up to the first whose pods must be read: those after it may have to wait for it. Until then it
 * takes a slot, and so does each that could start after it.
 */
function chooseByZone(candidates: readonly UpdateNode[], slots: Slots, snapshot: PolicySnapshot): Starts {
  const { active, zone: current } = snapshot.policy.status;
  const going = [...goingBeforeStart(active)];
  const byZone = Map.groupBy(candidates, ({ zone }) => zone);
  const order = moveToFront([...byZone.keys()].toSorted(), (zone) => zone === current);
  /** The zones whose turn it is; any, until one has a node that starts. */
  const begun = new Set(active.map(({ zone = "" }) => zone));
  const [first = order[0] ?? ""] = begun;
  const chosen = { nodes: [] as UpdateNode[], skips: [] as Skip[], toRead: [] as string[] };
  let taken = 0;
  const whyNot = (node: UpdateNode): Why | undefined => {
    if (begun.size > 0 && !begun.has(node.zone)) return otherZoneFirst(first);
    return taken >= slots.free ? slots.why : whyHeld(node, snapshot, going);
  };
  for (const node of order.flatMap((zone) => byZone.get(zone) ?? [])) {
    const why = whyNot(node);
    if (why) {
      chosen.skips.push({ node: node.name, ...why });
      continue;
    }
    begun.add(node.zone);
    taken++;
    if (chosen.toRead.length > 0) continue;
    if (snapshot.readings.has(node.name)) {
      chosen.nodes.push(node);
      going.push({ node: node.name, zone: node.zone, phase: "Starting" });
    } else chosen.toRead.push(node.name);
  }
  return chosen;
}

const otherZoneFirst = (zone: string): Why => ({
  reason: "OtherZoneFirst",
  message: `zone ${zone} is finished first`,
});

/** Why its pods keep the node, by what is known of them. */
function whyHeld(
  node: UpdateNode,
  { held, readings, policy }: PolicySnapshot,
  going: readonly GoingNode[],
): Why | undefined {
  const reading = readings.get(node.name);
  return (
    held?.get(node.name) ?? (reading && (whySkippedByPods(reading) ?? whyNoPlace(node, reading, { going, policy })))
  );
}

interface Slots {
  /** 0 or more. */
  readonly free: number;
  /** Why no more nodes start. It names each node that counts although it is not active, and until when. */
  readonly why: Why;
}

/**
 * Nodes that a person has released from a freeze count until they are back in service (§17.5). Those that are not Ready
 * may never become Ready: together they take all slots but one at most.
 */
function countSlots(snapshot: PolicySnapshot): Slots {
  const { policy, nodes } = snapshot;
  const isActive = new Set(policy.status.active.map(({ node }) => node));
  const at = new Map(
    policy.status.deferred.filter(({ reason }) => reason === RELEASED).map((one) => [one.node, one.at]),
  );
  const released = nodes.filter(({ name }) => at.has(name) && !isActive.has(name));
  const returning = released.filter((node) => node.ready && isReturning(node, snapshot, at.get(node.name)));
  const out = released.filter((node) => !node.ready && isOut(node));
  const taken = policy.status.active.length + returning.length;
  const remaining = Math.max(0, allowedActive(policy.maxConcurrent, nodes.length) - taken);
  const free = Math.max(remaining - out.length, taken === 0 ? Math.min(1, remaining) : 0);
  const counted = [...returning, ...out].map(({ name }) => `${name} counts until it is back in service`);
  return {
    free,
    why: { reason: "LimitReached", message: ["the limit of active nodes is reached", ...counted].join("; ") },
  };
}

const hasRest = ({ shadow }: UpdateNode): boolean => shadow !== undefined && isIdle(shadow);

const isOut = (node: UpdateNode): boolean => node.cordonedBy !== undefined || isInReboot(node) || !hasRest(node);

/** A node that serves counts no longer than its agent may take to report it. */
function isReturning(node: UpdateNode, { now, policy }: PolicySnapshot, releasedAt = ""): boolean {
  if (node.cordonedBy !== undefined || isInReboot(node)) return true;
  return !hasRest(node) && now < (parseTimestamp(releasedAt) ?? 0) + policy.deadlines.recoverSeconds * 1000;
}
