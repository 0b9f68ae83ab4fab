/** All controllers of the embedded cluster. */
import type { Clock } from "../clock.ts";
import type { Store } from "../store.ts";
import { runDisruptionBudgets } from "./disruption-budgets.ts";
import { runGarbageCollector } from "./garbage-collector.ts";
import { runKubelets } from "./kubelet.ts";
import { runScheduler } from "./scheduler.ts";
import { runStatefulSets } from "./statefulset/controller.ts";

/** Starts them; the answer stops them all. What is in the store already is taken up. */
export function startControllers(store: Store, clock: Clock): () => void {
  const stops = [runStatefulSets, runScheduler, runKubelets, runDisruptionBudgets, runGarbageCollector].map((run) => run(store, clock));
  return () => {
    for (const stop of stops) stop();
  };
}
