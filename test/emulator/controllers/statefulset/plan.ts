/**
 * What a StatefulSet's controller does with its pods in one sync, as a pure function. Source: updateStatefulSet in stateful_set_control.go:
 *   1. every ordinal in turn: failed -> delete, missing -> create, lost its labels -> repair
 *   2. pods beyond the ordinals: delete, highest first
 *   3. RollingUpdate: delete the highest outdated pod, once those above it are available
 * OrderedReady stops at the first pod that has to be waited for; Parallel waits for none in 1 and 2.
 */
import { isTerminating, type Pod, type Revision, type StatefulSet } from "../objects.ts";
import { hasIdentity, newPod, ordinalOf, revisionOf, withIdentity } from "./identity.ts";
import { isAvailable, isRunningAndReady } from "./status.ts";

export interface Plan {
  readonly create: readonly Pod[];
  readonly repair: readonly Pod[];
  readonly remove: readonly Pod[];
  /** How many of `remove` go for an update. */
  readonly updating: number;
}

/** `pods` are the set's own; `now` in ms since the epoch. */
export function planSync(set: StatefulSet, pods: readonly Pod[], current: Revision, update: Revision, now: number): Plan {
  const start = set.spec.ordinals?.start ?? 0;
  const end = start + (set.spec.replicas ?? 1);
  const { type: strategy = "RollingUpdate", rollingUpdate } = set.spec.updateStrategy ?? {};
  const partition = rollingUpdate?.partition ?? 0;
  const monotonic = set.spec.podManagementPolicy !== "Parallel";
  const plan = { create: [] as Pod[], repair: [] as Pod[], remove: [] as Pod[], updating: 0 };
  if (isTerminating(set)) return plan;

  const byOrdinal = new Map(pods.map((pod) => [ordinalOf(set, pod) ?? -1, pod]));
  // A strategy without its parameters remakes as many pods at the current revision as the status counts there: newVersionedStatefulSetPod.
  const keptAtCurrent = strategy === "RollingUpdate" && !rollingUpdate ? (set.status?.currentReplicas ?? 0) : partition;
  const inRange = Array.from({ length: end - start }, (_, index) => {
    const ordinal = start + index;
    return byOrdinal.get(ordinal) ?? newPod(set, index < keptAtCurrent ? current : update, ordinal);
  });
  const surplus = [...byOrdinal].filter(([ordinal]) => ordinal >= 0 && (ordinal < start || ordinal >= end));
  const condemned = surplus.toSorted(([a], [b]) => b - a).map(([, pod]) => pod);
  const isHealthy = (pod: Pod): boolean => isAvailable(pod, set.spec.minReadySeconds ?? 0, now) && !isTerminating(pod);
  const mustWaitFor = (pod: Pod): boolean => isTerminating(pod) || !isRunningAndReady(pod) || !isHealthy(pod);

  for (const pod of inRange) {
    if (pod.status.phase === "Failed" || pod.status.phase === "Succeeded") {
      if (!isTerminating(pod)) plan.remove.push(pod);
      if (monotonic) return plan;
      continue;
    }
    const isNew = pod.status.phase === undefined;
    if (isNew) plan.create.push(pod);
    if (monotonic && (isNew || mustWaitFor(pod))) return plan;
    if (!isNew && !hasIdentity(pod)) plan.repair.push(withIdentity(set, pod));
  }

  const firstUnhealthy = [...inRange, ...condemned.toReversed()].find((pod) => !isHealthy(pod));
  for (const pod of condemned) {
    if (monotonic && (isTerminating(pod) || (mustWaitFor(pod) && pod !== firstUnhealthy))) return plan;
    if (!isTerminating(pod)) plan.remove.push(pod);
    if (monotonic) return plan;
  }

  if (strategy === "OnDelete") return plan;
  for (const pod of inRange.slice(partition).toReversed()) {
    if (plan.remove.includes(pod)) return plan;
    if (revisionOf(pod) !== update.metadata.name && !isTerminating(pod)) {
      plan.remove.push(pod);
      return { ...plan, updating: 1 };
    }
    if (!isHealthy(pod)) return plan;
  }
  return plan;
}
