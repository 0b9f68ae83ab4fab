/** Plans a pass, and reads the pods of nodes as long as the plan asks for more. */
import { type NodePlan, planPass } from "../plan-pass.ts";
import type { NodeReading, PolicySnapshot, SkipReason, Why } from "../snapshot.ts";
import type { ReadPods } from "./read-pods.ts";

/** Nodes whose pods are read in one pass; each costs a list of its pods. */
const MAX_READS = 40;
/** Nodes that are read together: active ones, and one that may start. */
const AT_ONCE = 5;
/** Intervals between ticks for which a node that its pods hold is not read again: half a minute by default. */
const REMEMBERED_INTERVALS = 6;
/** Nodes whose last read is remembered; the order starts again beyond that. */
const MAX_REMEMBERED = 5000;
/** Reasons that are the pods' own, whatever other nodes do. */
const BY_PODS: ReadonlySet<SkipReason> = new Set([
  "UnhealthyPods",
  "RolloutInProgress",
  "DrainBlocked",
  "NoPlaceForPods",
]);

/** The memory of a process from pass to pass. */
export interface ReadingMemory {
  /** Milliseconds between two ticks in which nothing happens. */
  readonly intervalMs: number;
  /** Nodes that their pods hold, and since when, so that the next pass reads others. It never lets a node start. */
  readonly held: Map<string, { readonly why: Why; readonly at: number }>;
  /** When a node was read last: a pass first reads those that have waited longest. */
  readonly readAt: Map<string, number>;
}

export async function planAfterReading(
  first: Omit<PolicySnapshot, "readings">,
  readPods: ReadPods,
  memory: ReadingMemory,
): Promise<NodePlan> {
  const { now, policy } = first;
  const { readAt } = memory;
  const active = new Map(policy.status.active.map((entry) => [entry.node, entry]));
  forget(memory, now);
  const held = new Map([...memory.held].map(([node, { why }]) => [node, why]));
  const readings = new Map<string, NodeReading>();
  for (let remaining = MAX_READS; ;) {
    const plan = planPass({ ...first, readings, held });
    const waited = plan.toRead.toSorted((a, b) => (readAt.get(a) ?? 0) - (readAt.get(b) ?? 0));
    const next = waited.slice(0, Math.min(AT_ONCE, remaining));
    if (next.length === 0) {
      for (const { node, ...why } of plan.skips)
        if (readings.has(node) && BY_PODS.has(why.reason)) memory.held.set(node, { why, at: now });
      return plan;
    }
    remaining -= next.length;
    const found = await Promise.all(
      next.map(async (node) => [node, await readPods({ node, drained: active.get(node)?.workloads ?? [] })] as const),
    );
    for (const [node, reading] of found) {
      readings.set(node, reading);
      readAt.set(node, now);
    }
  }
}

function forget({ intervalMs, held, readAt }: ReadingMemory, now: number): void {
  for (const [node, { at }] of held) if (now - at >= REMEMBERED_INTERVALS * intervalMs) held.delete(node);
  if (readAt.size > MAX_REMEMBERED) readAt.clear();
}
