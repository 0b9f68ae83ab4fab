/**
 * Chooses the nodes that start now: zone after zone, those without failures first, as many as there are free slots
 *.
 */
import { moveToFront } from "../model/order.ts";
import { whyNoPlace } from "./drainable.ts";
import type { UpdateNode } from "./node.ts";
import { hasUpdate, whySkipped, whySkippedByPods } from "./skip.ts";
import type { GoingNode, NodeReading, PolicySnapshot, Skip } from "./snapshot.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import { RELEASED } from "./policy-status.ts";
import { allowedActive } from "./policy.ts";
import { isAtRest, isInReboot } from "./state-machine.ts";

export interface Starts {
  readonly nodes: readonly UpdateNode[];
  /** Every node with an update that does not start. */
  readonly skips: readonly Skip[];
  /** Nodes whose pods must be read before more can be said. */
  readonly toRead: readonly string[];
}

export interface PlannedStarts extends Starts {
  /** A slot is free and a node could start, as far as its pods need not be read: then the checks are asked. */
  readonly couldStart: boolean;
}

interface StartOptions {
  /** Zones of nodes that are active. */
  readonly activeZones: readonly string[];
  /** Why nothing starts at all. */
  readonly closed: Omit<Skip, "node"> | undefined;
  /** The reason why checks hold nodes that could start. */
  readonly held: Omit<Skip, "node"> | undefined;
  /** Nodes that are being updated, of all policies. */
  readonly going: readonly GoingNode[];
}

/** Nodes whose pods are read together beyond the free slots. */
const MORE_READS = 3;

/** Chooses among the nodes that are not active, by the active ones of `policy.status`. */
export function planStarts(idle: readonly UpdateNode[], given: StartOptions, snapshot: PolicySnapshot): PlannedStarts {
  const options = { ...given, ...countSlots(snapshot) };
  const skips: Skip[] = [];
  const candidates: UpdateNode[] = [];
  for (const node of idle.filter((node) => hasUpdate(node) || !node.shadow?.status)) {
    const skip = whySkipped(node, snapshot);
    if (skip) skips.push(skip);
    else candidates.push(node);
  }
  const couldStart = !options.closed && options.free > 0 && candidates.length > 0;
  const closed = options.closed ?? (couldStart ? options.held : undefined);
  if (closed)
    return {
      couldStart,
      nodes: [],
      toRead: [],
      skips: [...skips, ...candidates.map(({ name }) => ({ node: name, ...closed }))],
    };
  const chosen = chooseByZone(sortCandidates(candidates, snapshot), options, snapshot);
  return { ...chosen, couldStart, skips: [...skips, ...chosen.skips] };
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
 * can start.
 */
function chooseByZone(
  candidates: readonly UpdateNode[],
  options: StartOptions & Slots,
  snapshot: PolicySnapshot,
): Starts {
  const byZone = Map.groupBy(candidates, ({ zone }) => zone);
  const order = orderZones([...byZone.keys()], snapshot.policy.status.zone);
  const { activeZones } = options;
  let chosen: Starts = { nodes: [], skips: [], toRead: [] };
  for (const zone of order) {
    const own = byZone.get(zone) ?? [];
    const isTaken = chosen.nodes.length + chosen.toRead.length > 0;
    const isTurn = activeZones.length === 0 ? !isTaken : activeZones.includes(zone);
    const first = activeZones[0] ?? order[0] ?? zone;
    const rest = {
      ...options,
      free: options.free - chosen.nodes.length,
      going: [...options.going, ...chosen.nodes.map(goingNow)],
    };
    const found = isTurn ? chooseFrom(own, rest, snapshot) : keepAll(own, first);
    chosen = {
      nodes: [...chosen.nodes, ...found.nodes],
      skips: [...chosen.skips, ...found.skips],
      toRead: [...chosen.toRead, ...found.toRead],
    };
  }
  return chosen;
}

/** In byte order, but the zone that has begun goes first. */
function orderZones(zones: readonly string[], current: string | undefined): string[] {
  return moveToFront(zones.toSorted(), (zone) => zone === current);
}

function keepAll(nodes: readonly UpdateNode[], zone: string): Starts {
  return { nodes: [], toRead: [], skips: nodes.map(({ name }) => otherZoneFirst(name, zone)) };
}

const otherZoneFirst = (node: string, zone: string): Skip => ({
  node,
  reason: "OtherZoneFirst",
  message: `zone ${zone} is finished first`,
});

const goingNow = ({ name, zone }: UpdateNode): GoingNode => ({ node: name, zone, phase: "Starting" });

type Room = Slots & Pick<StartOptions, "going">;

const limitReached = (counted: readonly string[]): Omit<Skip, "node"> => ({
  reason: "LimitReached",
  message: ["as many nodes are active as may be", ...counted].join("; "),
});

const whyHeld = (
  node: UpdateNode,
  reading: NodeReading,
  context: Parameters<typeof whyNoPlace>[2],
): Omit<Skip, "node"> | undefined => whySkippedByPods(reading) ?? whyNoPlace(node, reading, context);

/**
 * The nodes that start, in order, up to the first whose pods must be read: those after it may have to wait for it.
 */
function chooseFrom(
  candidates: readonly UpdateNode[],
  { free, going: before, counted }: Room,
  snapshot: PolicySnapshot,
): Starts {
  const nodes: UpdateNode[] = [];
  const skips: Skip[] = [];
  const toRead: string[] = [];
  const going = [...before];
  let taken = 0;
  for (const node of candidates) {
    if (taken >= free + (toRead.length > 0 ? MORE_READS : 0)) {
      skips.push({ node: node.name, ...limitReached(counted) });
      continue;
    }
    const reading = snapshot.readings.get(node.name);
    const why =
      snapshot.held?.get(node.name) ?? (reading && whyHeld(node, reading, { going, policy: snapshot.policy }));
    if (why) {
      skips.push({ ...why, node: node.name });
      continue;
    }
    taken++;
    if (!reading) toRead.push(node.name);
    if (toRead.length > 0) continue;
    nodes.push(node);
    going.push(goingNow(node));
  }
  return { nodes, skips, toRead };
}

interface Slots {
  /** 0 or more. */
  readonly free: number;
  /** A sentence for each node that counts although it is not active: until when it counts. */
  readonly counted: readonly string[];
}

/**
 * Nodes that a person has released from a freeze count until they are back in service (§17.5). Those that are not Ready
 * may never become Ready: together they take all slots but one at most.
 */
function countSlots(snapshot: PolicySnapshot): Slots {
  const { policy, nodes, contested } = snapshot;
  const own = nodes.filter(({ name }) => !contested.has(name)).length;
  const isActive = new Set(policy.status.active.map(({ node }) => node));
  const at = new Map(
    policy.status.deferred.filter(({ reason }) => reason === RELEASED).map((one) => [one.node, one.at]),
  );
  const released = nodes.filter(({ name }) => at.has(name) && !isActive.has(name));
  const returning = released.filter((node) => node.ready && isReturning(node, snapshot, at.get(node.name)));
  const out = released.filter((node) => !node.ready && isOut(node));
  const taken = policy.status.active.length + returning.length;
  const remaining = Math.max(0, allowedActive(policy.maxConcurrent, own) - taken);
  const free = Math.max(remaining - out.length, taken === 0 ? Math.min(1, remaining) : 0);
  return { free, counted: [...returning, ...out].map(untilInService) };
}

const untilInService = ({ name }: UpdateNode): string => `${name} counts until it is back in service`;

const hasRest = ({ shadow }: UpdateNode): boolean => shadow !== undefined && isAtRest(shadow);

const isOut = (node: UpdateNode): boolean => node.cordonedBy !== undefined || isInReboot(node) || !hasRest(node);

/** A node that serves counts no longer than its agent may take to report it. */
function isReturning(node: UpdateNode, { now, policy }: PolicySnapshot, releasedAt = ""): boolean {
  if (node.cordonedBy !== undefined || isInReboot(node)) return true;
  return !hasRest(node) && now < (parseTimestamp(releasedAt) ?? 0) + policy.deadlines.recoverSeconds * 1000;
}
