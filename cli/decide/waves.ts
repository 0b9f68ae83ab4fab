/**
 * The order of draining nodes with the least waiting, in waves. Two nodes are in one wave if no disruption budget and no
 * rollout group has pods of different zones on them: neither drain waits for the other, and no second zone is disrupted
 * where no budget would make it wait. Pure.
 */
import type { Pod } from "../../reconciler/model/pod.ts";

/** A pod of the node, under a budget or in a rollout group. */
export interface Claim {
  readonly pod: Pod;
  /** The disruption budget that selects the pod, with its namespace; undefined if none does. */
  readonly budget: string | undefined;
  /** Its partition, if the budget counts by partitions. */
  readonly partition?: string | undefined;
  /** The rollout group of its StatefulSet, with its namespace; undefined if it is in none. */
  readonly group: string | undefined;
  /** The StatefulSet that owns the pod. */
  readonly zone: string;
  /** Its zone, or its partition in that zone, already has unavailable pods. */
  readonly isDown: boolean;
  /** Why it may not be evicted now; undefined if it may. */
  readonly refusal: string | undefined;
  /** That does not end by itself. */
  readonly isLasting?: boolean;
  /** Why nothing would refuse its eviction; undefined if a budget is asked. */
  readonly unguarded?: string | undefined;
  /** Why it is unknown whether a budget is asked about its eviction. */
  readonly unseen?: string;
}

export interface DrainNode {
  readonly name: string;
  /** The label topology.kubernetes.io/zone. */
  readonly topologyZone: string;
  readonly claims: readonly Claim[];
}

export interface Wave {
  readonly nodes: readonly DrainNode[];
}

/**
 * Nodes with pods of a zone that is already down come first, as every other zone waits for it; then by zone and name.
 */
export function orderDrains(nodes: readonly DrainNode[]): Wave[] {
  const waves: DrainNode[][] = [];
  for (const node of nodes.toSorted(compare)) {
    const wave = waves.find((one) => one.every((other) => !areApart(node, other)));
    if (wave) wave.push(node);
    else waves.push([node]);
  }
  return waves.map((wave) => ({ nodes: wave }));
}

const rankOf = ({ claims }: DrainNode): number => (claims.some(({ isDown }) => isDown) ? 0 : 1);

function compare(a: DrainNode, b: DrainNode): number {
  return rankOf(a) - rankOf(b) || compareText(a.topologyZone, b.topologyZone) || compareText(a.name, b.name);
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const areApart = (a: DrainNode, b: DrainNode): boolean =>
  a.claims.some((one) => b.claims.some((other) => exclude(one, other)));

/** Pods of two zones. Under one budget its own rule counts, which may allow pods of different partitions. */
function exclude(one: Claim, other: Claim): boolean {
  if (one.zone === other.zone) return false;
  if (one.budget !== undefined && one.budget === other.budget) return one.partition === other.partition;
  return one.group !== undefined && one.group === other.group;
}

/** The budgets and groups with pods of several zones on the node: its drain has to wait in the middle. */
export function splitsOf({ claims }: DrainNode): string[] {
  const split = claims.filter((one) => claims.some((other) => exclude(one, other)));
  return [...new Set(split.map(keyOf))];
}

/** `budget default/db`, with its partition, or `group default/db`. */
const keyOf = ({ budget, partition, group }: Pick<Claim, "budget" | "partition" | "group">): string =>
  budget === undefined
    ? `group ${group ?? ""}`
    : `budget ${budget}${partition === undefined ? "" : ` (partition ${partition})`}`;
