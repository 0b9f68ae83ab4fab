/** Plans a pass and looks at the pods of nodes for as long as the plan asks for it. */
import { type Plan, planPass } from "../nodes/plan.ts";
import type { NodeLook, PolicySnapshot } from "../nodes/snapshot.ts";
import type { LookAt } from "./look-around.ts";

/** Nodes that are looked at in one pass; each costs a list of its pods. */
const MOST_LOOKS = 40;
/** Milliseconds for which a node that could not be drained is not looked at again. */
const REMEMBERED_MS = 30_000;

/** What a process remembers of nodes that must not start: it never lets one start, and the next pass looks at others. */
export type Obstacles = Map<string, { readonly look: NodeLook; readonly at: number }>;

export async function planWithLooks(first: Omit<PolicySnapshot, "looks">, lookAt: LookAt, obstacles: Obstacles): Promise<Plan> {
  const { now, policy } = first;
  const active = new Map(policy.status.active.map((entry) => [entry.node, entry]));
  forget(obstacles, active, now);
  const looks = new Map([...obstacles].map(([node, { look }]) => [node, look]));
  for (let count = 0; ; count++) {
    const plan = planPass({ ...first, looks });
    const [node] = plan.looks;
    if (node === undefined || count === MOST_LOOKS) return plan;
    const look = await lookAt({ node, drained: active.get(node)?.workloads ?? [] });
    const seen = policy.holdForRollouts ? look : { ...look, rollout: undefined };
    looks.set(node, seen);
    if (!active.has(node) && isObstacle(seen)) obstacles.set(node, { look: seen, at: now });
  }
}

function forget(obstacles: Obstacles, active: ReadonlyMap<string, unknown>, now: number): void {
  for (const [node, { at }] of obstacles) if (now - at >= REMEMBERED_MS || active.has(node)) obstacles.delete(node);
}

const isObstacle = ({ obstacle, unfit, rollout }: NodeLook): boolean => [obstacle, unfit, rollout].some((why) => why !== undefined);
