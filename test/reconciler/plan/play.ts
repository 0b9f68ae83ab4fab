/** What has happened to a group on a small cluster before a plan is made, and how its pods get on. */
import { decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import { calmDown, carryOut, createWorld, happen, observe, type Happening } from "../rollout/world.ts";
import type { SmallCluster } from "../small-cluster.ts";

export interface Past {
  readonly sizes: readonly number[];
  readonly maxUnavailable: number;
  readonly past: readonly { readonly what: Happening; readonly zone: number; readonly pod: number }[];
  /** Rolled out so far. */
  readonly ticks: number;
}

/** A group in the middle of a rollout. */
export function playPast({ sizes, maxUnavailable, past, ticks }: Past): SmallCluster {
  const cluster = createWorld(sizes, maxUnavailable);
  const change = (what: Happening, zone = 0, pod = 0): void => {
    const sets = cluster.sets();
    const set = sets[zone % sets.length];
    if (set) happen(what, cluster, set, pod);
  };
  change("deploy");
  for (let i = 0; i < ticks; i++) {
    calmDown(cluster);
    const decision = decideRollout(observe(cluster));
    if (decision) carryOut(decision, cluster);
  }
  for (const { what, zone, pod } of past) change(what, zone, pod);
  return cluster;
}

export const syncAll = (cluster: SmallCluster): void =>
  cluster.sets().forEach(({ metadata }) => cluster.sync(metadata.name));

/** A pod after the other, in an order of their own, gets on: it ends, is made again, or becomes ready. */
export function moveOne(cluster: SmallCluster, pick: number): boolean {
  const moves = cluster.sets().flatMap(({ metadata: { name }, spec: { replicas = 0 } }) => {
    const pods = cluster.podsOf(name);
    const moving = pods.filter((pod) => ["terminating", "starting", "failed"].includes(cluster.lifeOf(pod)));
    const isMissing = pods.length < replicas;
    return [
      ...moving.map((pod) => () => getOn(cluster, pod.metadata.name)),
      ...(isMissing ? [() => cluster.sync(name)] : []),
    ];
  });
  const move = moves[pick % Math.max(1, moves.length)];
  move?.();
  return move !== undefined;
}

function getOn(cluster: SmallCluster, pod: string): void {
  cluster.ail(pod, "ready");
  cluster.runOut(pod);
}

/** All pods that are on their way get there together. */
export function moveAll(cluster: SmallCluster): boolean {
  let moved = false;
  while (moveOne(cluster, 0)) moved = true;
  return moved;
}
