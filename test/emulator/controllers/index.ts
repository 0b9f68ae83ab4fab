/** All controllers of the embedded cluster. */
import type { Clock } from "../clock.ts";
import type { Store, StoreEvent } from "../store.ts";
import { disruptionBudgets } from "./disruption-budgets.ts";
import { garbageCollector } from "./garbage-collector.ts";
import { kubelets } from "./kubelet.ts";
import { createQueue } from "./queue.ts";
import { scheduler } from "./scheduler.ts";
import { statefulSets } from "./statefulset/controller.ts";

/** Starts them; the answer stops them all. What is in the store already is taken up. */
export function startControllers(store: Store, clock: Clock): () => void {
  const stops = [statefulSets, scheduler, kubelets, disruptionBudgets, garbageCollector].map((create) => {
    const { reactionMs, concerns, handle } = create(store, clock);
    const queue = createQueue(clock, reactionMs, handle);
    const follow = (event: StoreEvent): void => {
      for (const key of concerns(event)) queue.add(key);
    };
    for (const event of store.since(0)) follow(event);
    return [store.subscribe(follow), queue.stop];
  });
  return () => {
    for (const stop of stops.flat()) stop();
  };
}
