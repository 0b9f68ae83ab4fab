/** Chooses the nodes that start now: zone after zone, those without failures first, as many as there are free slots. */
import { groupBy, moveToFront } from "../model/order.ts";
import type { UpdateNode } from "./node.ts";
import { hasUpdate, whySkipped, whySkippedByPods } from "./skip.ts";
import type { PolicySnapshot, Skip } from "./snapshot.ts";

export interface Starts {
  readonly nodes: readonly UpdateNode[];
  /** Every node with an update that does not start. */
  readonly skips: readonly Skip[];
  /** Nodes whose pods must be looked at before more can be said. */
  readonly looks: readonly string[];
}

export interface PlannedStarts extends Starts {
  /** A slot is free and a node could start, as far as its pods need not be looked at: then the checks are asked. */
  readonly couldStart: boolean;
}

export interface StartOptions {
  /** 0 or more. */
  readonly slots: number;
  /** Zones of nodes that are active. */
  readonly activeZones: readonly string[];
  /** Why nothing starts at all. */
  readonly closed: Omit<Skip, "node"> | undefined;
  /** Why checks hold what could start. */
  readonly held: Omit<Skip, "node"> | undefined;
}

/** Nodes that are looked at together beyond the free slots. */
const MORE_LOOKS = 3;

/** Chooses among the nodes that are not active. */
export function planStarts(idle: readonly UpdateNode[], options: StartOptions, snapshot: PolicySnapshot): PlannedStarts {
  const skips: Skip[] = [];
  const candidates: UpdateNode[] = [];
  for (const node of idle.filter((node) => hasUpdate(node) || !node.shadow?.status)) {
    const skip = whySkipped(node, snapshot);
    if (skip) skips.push(skip);
    else candidates.push(node);
  }
  const couldStart = !options.closed && options.slots > 0 && candidates.length > 0;
  const closed = options.closed ?? (couldStart ? options.held : undefined);
  if (closed) return { couldStart, nodes: [], looks: [], skips: [...skips, ...candidates.map(({ name }) => ({ node: name, ...closed }))] };
  const chosen = chooseByZone(sortCandidates(candidates, snapshot), options, snapshot);
  return { ...chosen, couldStart, skips: [...skips, ...chosen.skips] };
}

/** The order of starts: fewest failures first, then those that were not sent back, then by name; the controller's own node last. */
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

/** Nodes of one zone only: that of the active ones, otherwise the current one, otherwise the first one in which a node can start. */
function chooseByZone(candidates: readonly UpdateNode[], options: StartOptions, snapshot: PolicySnapshot): Starts {
  const { policy } = snapshot;
  if (!policy.zonesInOrder) return chooseFrom(candidates, options.slots, snapshot);
  const byZone = groupBy(candidates, ({ zone }) => zone);
  const order = orderZones([...byZone.keys()], policy.status.zone);
  const { activeZones } = options;
  let chosen: Starts = { nodes: [], skips: [], looks: [] };
  for (const zone of order) {
    const own = byZone.get(zone) ?? [];
    const isTaken = chosen.nodes.length + chosen.looks.length > 0;
    const isTurn = activeZones.length === 0 ? !isTaken : activeZones.includes(zone);
    const first = activeZones[0] ?? order[0] ?? zone;
    const found = isTurn ? chooseFrom(own, options.slots - chosen.nodes.length, snapshot) : keepAll(own, first);
    chosen = {
      nodes: [...chosen.nodes, ...found.nodes],
      skips: [...chosen.skips, ...found.skips],
      looks: [...chosen.looks, ...found.looks],
    };
  }
  return chosen;
}

/** In byte order, but the zone that has begun goes first. */
function orderZones(zones: readonly string[], current: string | undefined): string[] {
  return moveToFront(zones.toSorted(), (zone) => zone === current);
}

function keepAll(nodes: readonly UpdateNode[], zone: string): Starts {
  return { nodes: [], looks: [], skips: nodes.map(({ name }) => otherZoneFirst(name, zone)) };
}

const otherZoneFirst = (node: string, zone: string): Skip => ({
  node,
  reason: "OtherZoneFirst",
  message: `zone ${zone} is finished first`,
});

function chooseFrom(candidates: readonly UpdateNode[], slots: number, snapshot: PolicySnapshot): Starts {
  const nodes: UpdateNode[] = [];
  const skips: Skip[] = [];
  const looks: string[] = [];
  for (const node of candidates) {
    if (nodes.length + looks.length >= slots + (looks.length > 0 ? MORE_LOOKS : 0)) {
      skips.push({ node: node.name, reason: "LimitReached", message: "as many nodes are active as may be" });
      continue;
    }
    const skip = whySkippedByPods(node, snapshot);
    if (skip === "look") looks.push(node.name);
    else if (skip) skips.push(skip);
    else nodes.push(node);
  }
  // Nodes start in order: what has been looked at waits for what comes before it.
  return looks.length > 0 ? { nodes: [], skips, looks } : { nodes, skips, looks };
}
