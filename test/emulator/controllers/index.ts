/** All controllers of the embedded cluster. */
import type { Clock } from "../clock.ts";
import type { Store, StoreEvent } from "../store.ts";
import { disruptionBudgets } from "./disruption-budgets.ts";
import { garbageCollector } from "./garbage-collector.ts";
import { kubelets } from "./kubelet.ts";
import { createQueue } from "./queue.ts";
import { scheduler } from "./scheduler.ts";
import { statefulSets } from "./statefulset/controller.ts";

/**
 * Starts all controllers, which also handle the objects that exist already. `lateMs`: by how much a controller is late
 * right now, by its name. Returns a function that stops them.
 */
export function startControllers(
  store: Store,
  clock: Clock,
  lateMs: (controller: string) => number = () => 0,
): () => void {
  const stops = [statefulSets, scheduler, kubelets, disruptionBudgets, garbageCollector].map((create) => {
    const { latencyMs, keysFor, reconcile } = create(store, clock);
    const queue = createQueue(clock, latencyMs, reconcile);
    const enqueue = (event: StoreEvent): void => {
      for (const key of keysFor(event)) queue.add(key, latencyMs + lateMs(create.name));
    };
    for (const event of store.eventsSince(0)) enqueue(event);
    return [store.subscribe(enqueue), queue.stop];
  });
  return () => {
    for (const stop of stops.flat()) stop();
  };
}
