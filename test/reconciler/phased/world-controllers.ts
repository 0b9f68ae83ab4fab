/** What the StatefulSet controller and the kubelets do to the model of a phased rollout. */
import type { SimulatedPod, World } from "./world-state.ts";

/** A pod of the StatefulSet, and the template that it gets. */
export const releaseKey = ({ set }: World, index: number): string => `${set.uid} r${set.template} ${index}`;

/** One sync of the StatefulSet controller, in its order: create, scale down, update, write the status. */
export function sync(world: World): void {
  const { set } = world;
  const { pods, replicas, template, status, partition } = set;
  const isHealthy = (pod: SimulatedPod | undefined): boolean => pod?.phase === "ready";
  const indexes = Array.from({ length: replicas }, (_, index) => index);
  const unhealthy = indexes.filter((index) => !isHealthy(pods.get(index)));
  const missing = unhealthy
    .filter((index) => !pods.has(index))
    .filter((index) => !set.ordered || index === unhealthy[0]);
  const count = (): void => {
    const all = [...pods.values()];
    const updated = all.filter(({ revision, phase }) => revision === template && phase !== "terminating").length;
    const available = all.filter(isHealthy).length;
    const isDone =
      set.strategy === "RollingUpdate" && [updated, available, pods.size].every((number) => number === replicas);
    set.status = {
      observed: set.generation,
      current: isDone ? template : status.current,
      update: template,
      updated,
      available,
      replicas: pods.size,
    };
  };
  for (const index of missing) {
    const revision = index < partition ? status.current : template;
    pods.set(index, { revision, phase: "starting" });
    if (set.owner !== undefined && set.strategy === "RollingUpdate" && revision !== status.current)
      world.made.push(releaseKey(world, index));
  }
  const surplus = [...pods].find(([index, { phase }]) => index >= replicas && phase !== "terminating");
  if (surplus) surplus[1].phase = "terminating";
  else if (set.strategy === "RollingUpdate")
    for (const index of nextUpdates(set, unhealthy)) {
      Object.assign(pods.get(index) ?? {}, { phase: "terminating" });
      if (set.owner !== undefined && status.current !== template) world.replaced.push(releaseKey(world, index));
    }
  count();
}

/**
 * Which pods are replaced in one sync: the highest once all above it are healthy, or as many as may be unavailable,
 * whatever the others are.
 */
function nextUpdates(
  { ordered, maxUnavailable, partition, pods, replicas, template }: World["set"],
  unhealthy: readonly number[],
): number[] {
  const descending = Array.from({ length: replicas - Math.min(partition, replicas) }, (_, i) => replicas - 1 - i);
  const isOutdated = (index: number): boolean => {
    const pod = pods.get(index);
    return pod !== undefined && pod.revision !== template && pod.phase !== "terminating";
  };
  if (maxUnavailable > 1) return descending.filter(isOutdated).slice(0, Math.max(0, maxUnavailable - unhealthy.length));
  if (ordered && unhealthy.length > 0) return [];
  const next = descending.find((index) => pods.get(index)?.revision !== template || unhealthy.includes(index));
  return next !== undefined && isOutdated(next) ? [next] : [];
}

export function runKubelets({ set: { pods } }: World): void {
  for (const [index, pod] of pods) {
    if (pod.phase === "terminating") pods.delete(index);
    else if (pod.phase === "starting") pod.phase = "ready";
  }
}

/** Pods that are broken at a revision that is still wanted come up: nobody could roll out otherwise. */
export function heal({ set }: World): void {
  for (const pod of set.pods.values())
    if (pod.phase === "broken" && [set.template, set.status.current].includes(pod.revision)) pod.phase = "ready";
}
