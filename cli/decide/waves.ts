/**
 * The order of draining nodes with the least waiting, in waves. Two nodes are in one wave if no disruption budget has
 * pods of different zones on them, so that neither drain waits for the other. Pure.
 */
import type { BudgetPod } from "../../reconciler/budget/budget-pod.ts";

/** A pod of the node, under a budget. */
export interface BudgetClaim {
  readonly pod: BudgetPod;
  /**
   * The budget, or in partition mode the budget and the partition: pods with the same key in different zones exclude
   * each other.
   */
  readonly key: string;
  /** The StatefulSet that owns the pod. */
  readonly zone: string;
  /** Its zone, or its partition in that zone, already has unavailable pods. */
  readonly isDown: boolean;
  /** The reason why it may not be evicted now; undefined if it may. */
  readonly refusal: string | undefined;
  /** The reason why it is unknown whether a budget judges its eviction. */
  readonly unseen?: string;
}

export interface DrainNode {
  readonly name: string;
  /** The label topology.kubernetes.io/zone. */
  readonly topologyZone: string;
  readonly claims: readonly BudgetClaim[];
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

function areApart(a: DrainNode, b: DrainNode): boolean {
  return a.claims.some(({ key, zone }) => b.claims.some((other) => other.key === key && other.zone !== zone));
}

/** The keys with pods of several zones on the node: its drain has to wait in the middle. */
export function splitsOf({ claims }: DrainNode): string[] {
  const keys = [...new Set(claims.map(({ key }) => key))];
  return keys.filter((key) => new Set(claims.flatMap((claim) => (claim.key === key ? [claim.zone] : []))).size > 1);
}
