/**
 * Updates the status of PodDisruptionBudgets, which decides on evictions. Source: pkg/controller/disruption.
 */
import type { V1PodDisruptionBudgetSpec } from "@kubernetes/client-node";
import type { KubeObject } from "../objects.ts";
import { objectSelector } from "../selectors.ts";
import type { Store } from "../store.ts";
import { BUDGETS, controllerOf, isReady, isTerminating, STATEFUL_SETS, type Pod, type StatefulSet } from "./objects.ts";
import type { Controller } from "./queue.ts";

interface Budget extends KubeObject {
  spec?: V1PodDisruptionBudgetSpec;
}

/** Keys are namespaces: one reconciliation updates all budgets of a namespace. */
export function disruptionBudgets(store: Store): Controller {
  return {
    latencyMs: 5,
    keysFor: ({ resource, object }) =>
      [BUDGETS, STATEFUL_SETS, "pods"].includes(resource) ? [object.metadata.namespace ?? ""] : [],
    reconcile: (namespace) => {
      const budgets = store.list(BUDGETS, namespace) as Budget[];
      const pods = budgets.length > 0 ? (store.list("pods", namespace) as Pod[]) : [];
      for (const budget of budgets) store.update(BUDGETS, { ...budget, status: statusOf(store, budget, pods) });
    },
  };
}

function statusOf(store: Store, { metadata, spec = {} }: Budget, all: readonly Pod[]): object {
  const { selector, minAvailable = 0, maxUnavailable } = spec;
  const selects = objectSelector(selector);
  const pods = all.filter((pod) => selects(pod.metadata.labels ?? {}));
  const currentHealthy = pods.filter((pod) => isReady(pod) && !isTerminating(pod)).length;
  let expectedPods = 0;
  for (const [owner = "", owned] of Map.groupBy(pods, (pod) => controllerOf(pod)?.name)) {
    const set = store.get(STATEFUL_SETS, metadata.namespace, owner) as StatefulSet | undefined;
    expectedPods += set?.spec.replicas ?? owned.length;
  }
  const desiredHealthy =
    maxUnavailable === undefined
      ? scaledValue(minAvailable, expectedPods)
      : Math.max(0, expectedPods - scaledValue(maxUnavailable, expectedPods));
  const disruptionsAllowed = Math.max(0, currentHealthy - desiredHealthy);
  return {
    currentHealthy,
    desiredHealthy,
    disruptionsAllowed,
    expectedPods,
    observedGeneration: metadata.generation ?? 1,
  };
}

/** Returns a number unchanged, a percentage of `total` rounded up (intstr.GetScaledValueFromIntOrPercent). */
function scaledValue(value: number | string, total: number): number {
  return typeof value === "number" ? value : Math.ceil((Number.parseInt(value, 10) * total) / 100);
}
