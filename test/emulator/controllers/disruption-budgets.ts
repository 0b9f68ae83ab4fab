/** Keeps the status of PodDisruptionBudgets, which evictions go by. Source: pkg/controller/disruption. */
import type { Clock } from "../clock.ts";
import { timestamp, type KubeObject } from "../objects.ts";
import { objectSelector } from "../selectors.ts";
import type { Store } from "../store.ts";
import { controllerOf, isReady, isTerminating, type Condition, type LabelSelector, type Pod, type StatefulSet } from "./objects.ts";
import { createQueue } from "./queue.ts";

const REACTION_MS = 5;
const BUDGETS = "poddisruptionbudgets.policy";
/** An eviction that did not lead to a deletion by then is forgotten. */
const DELETION_TIMEOUT_MS = 120_000;

interface Budget extends KubeObject {
  spec: { readonly selector?: LabelSelector; readonly minAvailable?: number | string; readonly maxUnavailable?: number | string };
  status?: { readonly disruptedPods?: Readonly<Record<string, string>>; readonly conditions?: readonly Condition[] };
}

/** Runs until the answer is called. */
export function runDisruptionBudgets(store: Store, clock: Clock): () => void {
  const queue = createQueue(clock, REACTION_MS, (key) => {
    const [namespace, name = ""] = key.split("/");
    const budget = store.get(BUDGETS, namespace, name) as Budget | undefined;
    if (!budget) return;
    const selects = objectSelector(budget.spec.selector);
    const selected = (store.list("pods", namespace) as Pod[]).filter((pod) => selects(pod.metadata.labels ?? {}));
    const disrupted = disruptedPods(budget, selected, clock.now());
    store.update(BUDGETS, { ...budget, status: statusOf(store, budget, selected, disrupted, clock.now()) });
    const ends = Object.values(disrupted).map((time) => Date.parse(time) + DELETION_TIMEOUT_MS);
    if (ends.length > 0) queue.add(key, Math.min(...ends) - clock.now() + 1);
  });
  const unsubscribe = store.subscribe(({ resource, object, type }) => {
    const { namespace, name, generation } = object.metadata;
    if (resource === BUDGETS && type !== "DELETED") queue.add(`${namespace}/${name}`);
    const isScaled = resource === "statefulsets.apps" && generation !== (object as StatefulSet).status?.observedGeneration;
    if (resource !== "pods" && !isScaled) return;
    for (const budget of store.list(BUDGETS, namespace) as Budget[])
      if (isScaled || objectSelector(budget.spec.selector)(object.metadata.labels ?? {})) queue.add(`${namespace}/${budget.metadata.name}`);
  });
  return () => {
    unsubscribe();
    queue.stop();
  };
}

/** Evictions under way: of pods that are there, not yet terminating, and not overdue. */
function disruptedPods(budget: Budget, pods: readonly Pod[], now: number): Record<string, string> {
  const alive = new Set(pods.filter((pod) => !isTerminating(pod)).map((pod) => pod.metadata.name));
  const entries = Object.entries(budget.status?.disruptedPods ?? {});
  return Object.fromEntries(entries.filter(([name, time]) => alive.has(name) && Date.parse(time) + DELETION_TIMEOUT_MS >= now));
}

function statusOf(
  store: Store,
  budget: Budget,
  pods: readonly Pod[],
  disrupted: Record<string, string>,
  now: number,
): Record<string, unknown> {
  const currentHealthy = pods.filter((pod) => isReady(pod) && !isTerminating(pod) && !(pod.metadata.name in disrupted)).length;
  const { expectedPods, desiredHealthy } = expectationsOf(store, budget, pods);
  const disruptionsAllowed = expectedPods > 0 ? Math.max(0, currentHealthy - desiredHealthy) : 0;
  const generation = budget.metadata.generation ?? 1;
  return {
    ...(Object.keys(disrupted).length > 0 && { disruptedPods: disrupted }),
    conditions: [allowedCondition(budget.status?.conditions ?? [], disruptionsAllowed > 0, generation, timestamp(now))],
    currentHealthy,
    desiredHealthy,
    disruptionsAllowed,
    expectedPods,
    observedGeneration: generation,
  };
}

function expectationsOf(store: Store, { spec }: Budget, pods: readonly Pod[]): { expectedPods: number; desiredHealthy: number } {
  if (typeof spec.minAvailable === "number") return { expectedPods: pods.length, desiredHealthy: spec.minAvailable };
  const expectedPods = scaleOf(store, pods);
  if (spec.maxUnavailable === undefined) return { expectedPods, desiredHealthy: share(spec.minAvailable ?? 0, expectedPods) };
  return { expectedPods, desiredHealthy: Math.max(0, expectedPods - share(spec.maxUnavailable, expectedPods)) };
}

/** Replicas wanted by all the owners of the pods. */
function scaleOf(store: Store, pods: readonly Pod[]): number {
  const scales = new Map<string, number>();
  for (const pod of pods) {
    const owner = controllerOf(pod);
    if (!owner || scales.has(owner.uid)) continue;
    const found = store.get("statefulsets.apps", pod.metadata.namespace, owner.name) as StatefulSet | undefined;
    scales.set(owner.uid, found?.metadata.uid === owner.uid ? (found.spec.replicas ?? 1) : 0);
  }
  return [...scales.values()].reduce((sum, replicas) => sum + replicas, 0);
}

/** A number as it is, a percentage of `total` rounded up. */
function share(value: number | string, total: number): number {
  return typeof value === "number" ? value : Math.ceil((Number.parseInt(value, 10) * total) / 100);
}

function allowedCondition(before: readonly Condition[], isAllowed: boolean, observedGeneration: number, now: string): Condition {
  const wanted = {
    type: "DisruptionAllowed",
    status: isAllowed ? "True" : "False",
    reason: isAllowed ? "SufficientPods" : "InsufficientPods",
    message: "",
    observedGeneration,
  };
  const earlier = before.find(({ type }) => type === wanted.type);
  const since = earlier?.status === wanted.status ? earlier.lastTransitionTime : now;
  return { ...wanted, lastTransitionTime: since ?? now };
}
