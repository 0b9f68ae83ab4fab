/** Disruption budgets, as they are stored. */
import assert from "node:assert/strict";
import type { DisruptionBudget } from "../../infra/kubernetes/custom-resources.ts";
import type { PodObject, StatefulSet } from "../../infra/kubernetes/resources.ts";
import { type Budget, parseBudget } from "../../reconciler/budget/zpdb.ts";
import { make } from "./objects.ts";
import { NOON } from "./zones.ts";

export const PARTITIONS = { podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)" };

export function budgetObject(spec: object = {}, name = "ingester"): object {
  return make("ZoneAwarePodDisruptionBudget", name, {
    namespace: "test",
    metadata: { uid: `uid-${name}`, resourceVersion: "1", generation: 1 },
    spec: { selector: { matchLabels: { "rollout-group": "ingester" } }, ...spec },
  });
}

export function budget(spec: object = {}): Budget {
  const parsed = parseBudget(budgetObject(spec));
  assert.ok(!("problem" in parsed), JSON.stringify(parsed));
  return parsed;
}

/** Labels by which a stored budget selects, whatever the group. */
const UNDER = { guarded: "yes" };

/** The same object, selected by a stored budget. */
export function guarded<T extends PodObject | StatefulSet>(object: T): T {
  return { ...object, metadata: { ...object.metadata, labels: { ...object.metadata?.labels, ...UNDER } } };
}

export type Disruption = "eviction" | "unpinned eviction" | "rollout";

/** The reservation of a pod, as it is stored. */
export function reservationOf(name: string, at = NOON, disruption: Disruption = "eviction"): object {
  const pinned = disruption !== "unpinned eviction";
  const kind = disruption === "rollout" ? "rollout" : "eviction";
  return { [name]: { kind, uid: `uid-${name}`, pinned, time: new Date(at).toISOString(), by: "another" } };
}

/** A budget with what is reserved on it. */
export function storedBudget(
  spec: object = {},
  reservations: readonly object[] = [],
  name = "ingester",
): DisruptionBudget {
  const object = budgetObject({ selector: { matchLabels: UNDER }, ...spec }, name);
  return { ...object, status: { disruptedPods: Object.assign({}, ...reservations) } } as DisruptionBudget;
}
