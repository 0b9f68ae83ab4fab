/** Keeps the status of PodDisruptionBudgets, which evictions go by. Source: pkg/controller/disruption. */
import type { V1PodDisruptionBudgetSpec } from "@kubernetes/client-node";
import type { KubeObject } from "../objects.ts";
import { objectSelector } from "../selectors.ts";
import type { Store } from "../store.ts";
import { BUDGETS, controllerOf, isReady, isTerminating, SETS, type Pod, type StatefulSet } from "./objects.ts";
import type { Controller } from "./queue.ts";

interface Budget extends KubeObject {
  spec?: V1PodDisruptionBudgetSpec;
}

/** Looks at all budgets of a namespace at once. */
export function disruptionBudgets(store: Store): Controller {
  return {
    reactionMs: 5,
    concerns: ({ resource, object }) => ([BUDGETS, SETS, "pods"].includes(resource) ? [object.metadata.namespace ?? ""] : []),
    handle: (namespace) => {
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
    const set = store.get(SETS, metadata.namespace, owner) as StatefulSet | undefined;
    expectedPods += set?.spec.replicas ?? owned.length;
  }
  const desiredHealthy =
    maxUnavailable === undefined ? share(minAvailable, expectedPods) : Math.max(0, expectedPods - share(maxUnavailable, expectedPods));
  const disruptionsAllowed = Math.max(0, currentHealthy - desiredHealthy);
  return { currentHealthy, desiredHealthy, disruptionsAllowed, expectedPods, observedGeneration: metadata.generation ?? 1 };
}

/** A number as it is, a percentage of `total` rounded up. */
function share(value: number | string, total: number): number {
  return typeof value === "number" ? value : Math.ceil((Number.parseInt(value, 10) * total) / 100);
}
