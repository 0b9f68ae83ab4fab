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

/** A pod gets on: it ends, is made again, or becomes ready. */
function moveOne(cluster: SmallCluster): boolean {
  for (const {
    metadata: { name },
    spec: { replicas = 0 },
  } of cluster.sets()) {
    const pods = cluster.podsOf(name);
    const moving = pods.find((pod) => ["terminating", "starting", "failed"].includes(cluster.lifeOf(pod)));
    if (moving) {
      cluster.ail(moving.metadata.name, "ready");
      cluster.runOut(moving.metadata.name);
    } else if (pods.length < replicas) cluster.sync(name);
    else continue;
    return true;
  }
  return false;
}

/** All pods that are on their way get there together. */
export function moveAll(cluster: SmallCluster): boolean {
  let moved = false;
  while (moveOne(cluster)) moved = true;
  return moved;
}
