/** The scheduler: it binds a pod (schedule.ts) once it is there, and again once a node or a claim has changed. */
import type { Clock } from "../clock.ts";
import type { Store } from "../store.ts";
import { apply } from "./changes.ts";
import { controllerOf, isTerminating, type Pod } from "./objects.ts";
import { getByKey, keyOf, type Controller } from "./queue.ts";
import { schedule } from "./schedule.ts";

export function scheduler(store: Store, clock: Clock): Controller {
  const turns = new Map<string, number>();
  return {
    latencyMs: 1,
    keysFor: ({ type, resource, object }) => {
      if (resource === "nodes" || resource === "persistentvolumeclaims")
        return (store.list("pods") as Pod[]).filter((pod) => !pod.spec.nodeName).map(keyOf);
      return resource === "pods" && type === "ADDED" ? [keyOf(object)] : [];
    },
    reconcile: (key) => {
      const pod = getByKey(store, "pods", key) as Pod | undefined;
      if (!pod || pod.spec.nodeName || isTerminating(pod)) return;
      const owner = controllerOf(pod)?.uid ?? pod.metadata.uid;
      const turn = turns.get(owner) ?? turns.size;
      turns.set(owner, turn);
      const step = schedule(pod, {
        nodes: store.list("nodes"),
        bound: () => (store.list("pods") as Pod[]).map(({ spec }) => spec.nodeName),
        turn,
        hasClaim: (name) => store.get("persistentvolumeclaims", pod.metadata.namespace, name) !== undefined,
        now: clock.now(),
      });
      apply(store, step);
    },
  };
}
