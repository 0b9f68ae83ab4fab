/** Plans a pass, looks at the pods of nodes for as long as the plan asks for it, and asks Prometheus once. */
import { type NodePlan, planPass } from "../plan.ts";
import type { NodeLook, PolicySnapshot, SkipReason, StartCheckAnswers } from "../snapshot.ts";
import type { DueStartCheck } from "../start-checks.ts";
import type { LookAt } from "./look-around.ts";

/** Nodes that are looked at in one pass; each costs a list of its pods. */
const MAX_LOOKS = 40;
/** Active nodes that are looked at together. */
const AT_ONCE = 5;
/** Milliseconds for which a node that could not be drained is not looked at again. */
const REMEMBERED_MS = 30_000;
/** Nodes whose last look is remembered; the order starts again beyond that. */
const MAX_REMEMBERED = 5000;

interface Remembered {
  readonly look: NodeLook;
  readonly at: number;
  /** The active nodes and their phases, if the look holds only while these are active. */
  readonly going?: string;
}

/** What a process remembers from pass to pass. */
export interface LookMemory {
  /** Nodes that must not start: it never lets one start, and the next pass looks at others. */
  readonly obstacles: Map<string, Remembered>;
  /** Nodes that are being drained: others ask what their pods need. Never asked for a decision about themselves. */
  readonly departures: Map<string, Remembered>;
  /** When a node was looked at last: a pass looks first at those that have waited longest. */
  readonly lookedAt: Map<string, number>;
}

export interface Questions {
  readonly lookAt: LookAt;
  /** Resolves with the answers that came in time; never rejects. */
  readonly askChecks: (due: readonly DueStartCheck[]) => Promise<StartCheckAnswers>;
}

export async function planWithLooks(
  first: Omit<PolicySnapshot, "looks" | "departures" | "answers">,
  { lookAt, askChecks }: Questions,
  memory: LookMemory,
): Promise<NodePlan> {
  const { now, policy } = first;
  const { obstacles, lookedAt } = memory;
  const active = new Map(policy.status.active.map((entry) => [entry.node, entry]));
  const going = describeGoing(first);
  forget(memory, active, { now, going });
  const looks = new Map([...obstacles].map(([node, { look }]) => [node, look]));
  const departures = new Map([...memory.departures].map(([node, { look }]) => [node, look]));
  let answers: StartCheckAnswers | undefined;
  for (let left = MAX_LOOKS; ;) {
    const plan = planPass({ ...first, looks, departures, ...(answers && { answers }) });
    if (plan.due.length > 0 && !answers) {
      answers = await askChecks(plan.due);
      continue;
    }
    const next = chooseNext(plan, active, lookedAt).slice(0, left);
    if (next.length === 0) {
      rememberHeld(plan, looks, { obstacles, going, now });
      return plan;
    }
    left -= next.length;
    const found = await Promise.all(
      next.map(async (node) => [node, await lookAt({ node, drained: active.get(node)?.workloads ?? [] })] as const),
    );
    for (const [node, look] of found) {
      const seen = policy.holdForRollouts ? look : { ...look, rollout: undefined };
      looks.set(node, seen);
      lookedAt.set(node, now);
      memory.departures.set(node, { look: seen, at: now });
      if (!active.has(node) && isObstacle(seen)) obstacles.set(node, { look: seen, at: now });
    }
  }
}

/** Some active nodes, as all of them must be looked at; otherwise one that may start. */
function chooseNext({ looks }: NodePlan, active: ReadonlyMap<string, unknown>, lookedAt: ReadonlyMap<string, number>): string[] {
  const ordered = looks.toSorted((a, b) => (lookedAt.get(a) ?? 0) - (lookedAt.get(b) ?? 0));
  const ofActive = ordered.filter((node) => active.has(node));
  return ofActive.length > 0 ? ofActive.slice(0, AT_ONCE) : ordered.slice(0, 1);
}

function describeGoing({ policy, others = [] }: Omit<PolicySnapshot, "looks">): string {
  return [...policy.status.active, ...others]
    .map(({ node, phase }) => `${node}:${phase}`)
    .toSorted()
    .join();
}

/** Reasons that hold as long as the same nodes are active. */
const HELD_BY_OTHERS: ReadonlySet<SkipReason> = new Set(["NoPlaceForPods", "DrainWouldNotEnd"]);

function rememberHeld(
  { skips }: NodePlan,
  looks: ReadonlyMap<string, NodeLook>,
  { obstacles, going, now }: Pick<LookMemory, "obstacles"> & { readonly going: string; readonly now: number },
): void {
  for (const { node, ...held } of skips) {
    const look = looks.get(node);
    if (look && !look.held && HELD_BY_OTHERS.has(held.reason)) obstacles.set(node, { look: { ...look, held }, at: now, going });
  }
}

function forget(
  { obstacles, departures, lookedAt }: LookMemory,
  active: ReadonlyMap<string, unknown>,
  { now, going }: { readonly now: number; readonly going: string },
): void {
  const isOld = ({ at, ...one }: Remembered): boolean => now - at >= REMEMBERED_MS || (one.going ?? going) !== going;
  for (const [node, one] of obstacles) if (isOld(one) || active.has(node)) obstacles.delete(node);
  for (const [node, one] of departures) if (isOld(one)) departures.delete(node);
  if (lookedAt.size > MAX_REMEMBERED) lookedAt.clear();
}

const isObstacle = ({ obstacle, unknown, unfit, rollout }: NodeLook): boolean =>
  [obstacle, unknown, unfit, rollout].some((why) => why !== undefined);
