/**
 * Updates the status of PodDisruptionBudgets, which decides on evictions. Source: pkg/controller/disruption.
 */
import type { V1PodDisruptionBudgetSpec, V1PodDisruptionBudgetStatus } from "@kubernetes/client-node";
import type { Json } from "../../../infra/kubernetes/resources.ts";
import type { Clock } from "../clock.ts";
import { BUILT_IN } from "../kinds.ts";
import { dig, isTrue, type KubeObject, timestamp } from "../objects.ts";
import { objectSelector } from "../selectors.ts";
import type { Store } from "../store.ts";
import { BUDGETS, controllerOf, isTerminating, STATEFUL_SETS, type Pod, type StatefulSet } from "./objects.ts";
import { getByKey, keyOf, type Controller } from "./queue.ts";

export type BudgetStatus = Json<V1PodDisruptionBudgetStatus>;

interface Budget extends KubeObject {
  spec?: V1PodDisruptionBudgetSpec;
  status?: BudgetStatus;
}

/** An eviction counts until the pod is terminating, for so long at most (DeletionTimeout). */
const EVICTED_MS = 120_000;

export function disruptionBudgets(store: Store, clock: Clock): Controller {
  return {
    latencyMs: 5,
    // A change of a StatefulSet's replicas is not seen before one of a pod, and of a pod only the labels that it has now.
    keysFor: ({ resource, object }) => {
      if (resource === BUDGETS) return [keyOf(object)];
      if (resource !== "pods") return [];
      const { namespace, labels = {} } = object.metadata;
      return store.list(BUDGETS, namespace).flatMap((budget) => (selectorOf(budget)(labels) ? [keyOf(budget)] : []));
    },
    reconcile: (key) => {
      const budget = getByKey(store, BUDGETS, key);
      if (!budget) return;
      const all = store.list("pods", budget.metadata.namespace) as Pod[];
      const status = statusOf(store, { budget, all, now: clock.now() });
      store.update(BUDGETS, { ...budget, status });
      const ends = Object.values(status.disruptedPods ?? {}).map((since) => Date.parse(since) + EVICTED_MS);
      return ends.length > 0 ? Math.min(...ends) - clock.now() : undefined;
    },
  };
}

const selectorOf = (budget: KubeObject): ReturnType<typeof objectSelector> =>
  objectSelector(dig(budget, "spec", "selector"));

interface Counted {
  readonly budget: Budget;
  readonly all: readonly Pod[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

function statusOf(store: Store, { budget, all, now }: Counted): BudgetStatus {
  const { metadata, status = {} } = budget;
  const { disruptedPods: before = {}, ...rest } = status;
  const selects = selectorOf(budget);
  const pods = all.filter((pod) => selects(pod.metadata.labels ?? {}));
  const evicted = Object.entries(before).filter(
    ([name, since]) =>
      Date.parse(since) + EVICTED_MS > now && pods.some((pod) => pod.metadata.name === name && !isTerminating(pod)),
  );
  const disruptedPods = Object.fromEntries(evicted);
  const currentHealthy = pods.filter(
    (pod) => isTrue(pod, "Ready") && !isTerminating(pod) && !Object.hasOwn(disruptedPods, pod.metadata.name),
  ).length;
  const counted = expectationOf(store, budget, pods);
  if ("failure" in counted) return failed(status, counted.failure, timestamp(now));
  const { expectedPods, desiredHealthy } = counted;
  const disruptionsAllowed = expectedPods > 0 ? Math.max(0, currentHealthy - desiredHealthy) : 0;
  return withCondition(
    {
      ...rest,
      ...(evicted.length > 0 && { disruptedPods }),
      currentHealthy,
      desiredHealthy,
      disruptionsAllowed,
      expectedPods,
      observedGeneration: metadata.generation ?? 1,
    },
    timestamp(now),
  );
}

/** Pods without a controller are not expected, unless the budget is a number of pods that must be there. */
function expectationOf(store: Store, { metadata, spec = {} }: Budget, pods: readonly Pod[]) {
  const { minAvailable, maxUnavailable } = spec;
  const amount = maxUnavailable ?? minAvailable;
  if (amount === undefined) return { expectedPods: 0, desiredHealthy: 0 };
  if (maxUnavailable === undefined && typeof minAvailable === "number")
    return { expectedPods: pods.length, desiredHealthy: minAvailable };
  let expectedPods = 0;
  for (const owned of Map.groupBy(pods, (pod) => controllerOf(pod)?.uid).values()) {
    const owner = controllerOf(owned[0] as Pod);
    if (!owner) continue;
    const kind = BUILT_IN.find((one) => one.kind === owner.kind);
    if (kind && !kind.subresources.includes("scale"))
      return { failure: `${kind.resource} does not implement the scale subresource` };
    const set = store.get(STATEFUL_SETS, metadata.namespace, owner.name) as StatefulSet | undefined;
    if (kind?.resource === STATEFUL_SETS && set?.metadata.uid !== owner.uid)
      return { failure: `found no controllers for pod ${JSON.stringify(owned[0]?.metadata.name)}` };
    expectedPods += kind?.resource === STATEFUL_SETS ? (set?.spec.replicas ?? 1) : owned.length;
  }
  const scaled = scaledValue(amount, expectedPods);
  return { expectedPods, desiredHealthy: maxUnavailable === undefined ? scaled : Math.max(0, expectedPods - scaled) };
}

/** What could not be counted allows nothing: failSafe. */
function failed(status: BudgetStatus, message: string, now: string): BudgetStatus {
  const before = status.conditions?.find(({ type }) => type === "DisruptionAllowed");
  const condition = {
    type: "DisruptionAllowed",
    observedGeneration: status.observedGeneration ?? 0,
    status: "False",
    reason: "SyncFailed",
    message,
    lastTransitionTime: before?.status === "False" ? before.lastTransitionTime : now,
  };
  return { ...status, disruptionsAllowed: 0, conditions: [condition] };
}

/** The status with its condition DisruptionAllowed as its count says; `now` is RFC 3339. */
export function withCondition(status: BudgetStatus, now: string): BudgetStatus {
  const { disruptionsAllowed = 0, observedGeneration = 0 } = status;
  const isAllowed = disruptionsAllowed > 0;
  const condition = {
    type: "DisruptionAllowed",
    observedGeneration,
    status: isAllowed ? "True" : "False",
    reason: isAllowed ? "SufficientPods" : "InsufficientPods",
    message: "",
  };
  const before = status.conditions?.find(({ type }) => type === condition.type);
  const lastTransitionTime = before?.status === condition.status ? before.lastTransitionTime : now;
  return { ...status, conditions: [{ ...condition, lastTransitionTime }] };
}

/** Returns a number unchanged, a percentage of `total` rounded up (intstr.GetScaledValueFromIntOrPercent). */
function scaledValue(value: number | string, total: number): number {
  return typeof value === "number" ? value : Math.ceil((Number.parseInt(value, 10) * total) / 100);
}
