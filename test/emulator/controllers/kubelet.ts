/**
 * The kubelets: they run pods (run-pod.ts). A node with the annotation `sim/down` is down: nothing happens to its pods.
 * Their containers start again once it is up.
 */
import type { Clock } from "../clock.ts";
import { dig, type KubeObject } from "../objects.ts";
import type { Store } from "../store.ts";
import { apply } from "./changes.ts";
import type { Pod } from "./objects.ts";
import { getByKey, keyOf, type Controller } from "./queue.ts";
import { afterOutage, newMemory, runPod, type PodMemory } from "./run-pod.ts";

export function kubelets(store: Store, clock: Clock): Controller {
  let count = 0;
  const known = new Map<string, PodMemory>();
  return {
    latencyMs: 1,
    keysFor: ({ resource, object, previous }) => {
      if (resource === "pods") return [keyOf(object)];
      if (resource !== "nodes" || isDown(object) === isDown(previous)) return [];
      const { name } = object.metadata;
      return store.list("pods").flatMap((pod) => (dig(pod, "spec", "nodeName") === name ? [keyOf(pod)] : []));
    },
    reconcile: (key) => {
      const pod = getByKey(store, "pods", key) as Pod | undefined;
      if (!pod) return void known.delete(key);
      const { uid } = pod.metadata;
      const before = known.get(key);
      const memory = before?.uid === uid ? before : newMemory(uid, ++count);
      if (pod.spec.nodeName && isDown(store.get("nodes", undefined, pod.spec.nodeName)))
        return void known.set(key, afterOutage(memory));
      const step = runPod(pod, memory, clock.now());
      known.set(key, step.memory);
      apply(store, step);
      return step.nextMs;
    },
  };
}

const isDown = (node: KubeObject | undefined): boolean => node?.metadata.annotations?.["sim/down"] !== undefined;
