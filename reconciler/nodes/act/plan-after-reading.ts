/** Plans a pass, reads the pods of nodes as long as the plan asks for more, and asks Prometheus once. */
import { type NodePlan, planPass } from "../plan-pass.ts";
import type { Answers, PlannedCheck } from "../../checks/result.ts";
import type { NodeReading, PolicySnapshot } from "../snapshot.ts";
import type { ReadPods } from "./read-pods.ts";

/** Nodes whose pods are read in one pass; each costs a list of its pods. */
const MAX_READS = 40;
/** Active nodes that are read together. */
const AT_ONCE = 5;
/** Intervals between ticks for which a node that could not be drained is not read again: half a minute by default. */
const REMEMBERED_INTERVALS = 6;
/** Nodes whose last read is remembered; the order starts again beyond that. */
const MAX_REMEMBERED = 5000;

interface Remembered {
  readonly reading: NodeReading;
  readonly at: number;
}

/** The memory of a process from pass to pass. */
export interface ReadingMemory {
  /** Milliseconds between two ticks in which nothing happens. */
  readonly intervalMs: number;
  /** Nodes that must not start, so that the next pass reads others. The memory never lets a node start. */
  readonly obstacles: Map<string, Remembered>;
  /** When a node was read last: a pass first reads those that have waited longest. */
  readonly readAt: Map<string, number>;
}

export interface Questions {
  readonly readPods: ReadPods;
  /** Resolves with the answers that came in time; never rejects. */
  readonly askChecks: (due: readonly PlannedCheck[]) => Promise<Answers>;
}

export async function planAfterReading(
  first: Omit<PolicySnapshot, "readings" | "answers">,
  { readPods, askChecks }: Questions,
  memory: ReadingMemory,
): Promise<NodePlan> {
  const { now, policy } = first;
  const { obstacles, readAt } = memory;
  const active = new Map(policy.status.active.map((entry) => [entry.node, entry]));
  forget(memory, active, now);
  const readings = new Map([...obstacles].map(([node, { reading }]) => [node, reading]));
  let answers: Answers | undefined;
  for (let remaining = MAX_READS; ;) {
    const plan = planPass({ ...first, readings, ...(answers && { answers }) });
    if (plan.due.length > 0 && !answers) {
      answers = await askChecks(plan.due);
      continue;
    }
    const next = chooseNext(plan, active, readAt).slice(0, remaining);
    if (next.length === 0) {
      rememberHeld(plan, readings, { obstacles, now });
      return plan;
    }
    remaining -= next.length;
    const found = await Promise.all(
      next.map(async (node) => [node, await readPods({ node, drained: active.get(node)?.workloads ?? [] })] as const),
    );
    for (const [node, reading] of found) {
      const seen = policy.holdForRollouts ? reading : { ...reading, rollout: undefined };
      readings.set(node, seen);
      readAt.set(node, now);
      if (!active.has(node) && isObstacle(seen)) obstacles.set(node, { reading: seen, at: now });
    }
  }
}

/** Some active nodes, as all of them must be read; otherwise one that may start. */
function chooseNext(
  { toRead }: NodePlan,
  active: ReadonlyMap<string, unknown>,
  readAt: ReadonlyMap<string, number>,
): string[] {
  const ordered = toRead.toSorted((a, b) => (readAt.get(a) ?? 0) - (readAt.get(b) ?? 0));
  const ofActive = ordered.filter((node) => active.has(node));
  return ofActive.length > 0 ? ofActive.slice(0, AT_ONCE) : ordered.slice(0, 1);
}

function rememberHeld(
  { skips }: NodePlan,
  readings: ReadonlyMap<string, NodeReading>,
  { obstacles, now }: Pick<ReadingMemory, "obstacles"> & { readonly now: number },
): void {
  for (const { node, ...held } of skips) {
    const reading = readings.get(node);
    if (reading && !reading.held && (held.reason === "NoPlaceForPods" || held.reason === "DrainBlocked"))
      obstacles.set(node, { reading: { ...reading, held }, at: now });
  }
}

function forget(
  { intervalMs, obstacles, readAt }: ReadingMemory,
  active: ReadonlyMap<string, unknown>,
  now: number,
): void {
  for (const [node, { at }] of obstacles)
    if (now - at >= REMEMBERED_INTERVALS * intervalMs || active.has(node)) obstacles.delete(node);
  if (readAt.size > MAX_REMEMBERED) readAt.clear();
}

const isObstacle = ({ obstacle, unfit, rollout }: NodeReading): boolean =>
  [obstacle, unfit, rollout].some((why) => why !== undefined);
