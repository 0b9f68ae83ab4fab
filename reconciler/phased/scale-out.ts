/**
 * Replicas that are added in the middle of a rollout (§16.15). The step remembers the number of pods at the first
 * release: those are judged by the steps, and may be removed and added again. A pod beyond them would get the latest
 * template without a step of its own.
 *
 *   more replicas than judged -> hold the partition -> replace what came at the update revision -> the steps begin above the new pods
 */
import { isReady } from "../model/health.ts";
import type { Pod } from "../model/pod.ts";
import type { PhasedDecision, TargetRule, TargetSnapshot } from "./snapshot.ts";
import { currentStep, findMissing, isUpdated, type StepPlace } from "./step.ts";
import { firstReleased, HELD } from "./target.ts";

/** Without a step that records the number, all pods are judged: others have decided which pods are released. */
const judgedBy = (snapshot: TargetSnapshot): number => currentStep(snapshot)?.replicas ?? snapshot.target.replicas;

/**
 * The place of the step that the partition asks for. Without an earlier step, others have decided which pods are
 * released.
 */
export function placeOf(snapshot: TargetSnapshot): StepPlace {
  const { target } = snapshot;
  const partition = firstReleased(target);
  const judged = judgedBy(snapshot);
  const keepsMark = partition < target.replicas || findStrays(snapshot).length > 0;
  return { partition, replicas: keepsMark ? judged : target.replicas };
}

/**
 * Pods that a scale-out added at the update revision before the partition was raised: they have passed no step. In
 * ascending order of their indexes. None while the StatefulSet has one revision, as after it was recreated around its
 * pods: each pod would return at the same revision, and be replaced for ever.
 */
export function findStrays(snapshot: TargetSnapshot): Pod[] {
  const { target, pods } = snapshot;
  if (target.status.currentRevision === target.status.updateRevision) return [];
  const judged = judgedBy(snapshot);
  const isStray = ([index, pod]: readonly [number, Pod]): boolean =>
    index >= judged && index < target.replicas && isUpdated(target.status.updateRevision, pod);
  return [...pods]
    .filter(isStray)
    .toSorted(([a], [b]) => a - b)
    .map(([, pod]) => pod);
}

/**
 * Holds the partition. It does not wait until the StatefulSet controller observes the replicas, as the controller then
 * creates these pods. With partition 0 every step has passed.
 */
export const scaledOut: TargetRule = (snapshot) => {
  const { name, partition, replicas, firstOrdinal } = snapshot.target;
  const judged = judgedBy(snapshot);
  if (partition === 0 || partition >= replicas || replicas <= judged) return undefined;
  const message = `${name} has ${replicas} replicas: no step has passed for ${name}-${firstOrdinal + judged} and those above`;
  return { action: "setPartition", partition: HELD, reason: "ScaleOut", message };
};

/** Such pods return at the current revision: at once if they are not ready, otherwise one after the other. */
export function strayReturned(snapshot: TargetSnapshot): PhasedDecision | undefined {
  const { target } = snapshot;
  if (target.partition !== HELD) return undefined;
  const strays = findStrays(snapshot);
  const pod =
    strays.find((pod) => !isReady(pod)) ?? (findMissing(snapshot, target.replicas) ? undefined : strays.at(-1));
  return (
    pod && {
      action: "replacePod",
      pod,
      asksBudget: true,
      message: `${pod.name} came with a scale-out, and has passed no step`,
    }
  );
}
