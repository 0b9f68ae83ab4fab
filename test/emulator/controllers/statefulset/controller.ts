/** The StatefulSet controller: syncs (sync.ts) a few milliseconds after a StatefulSet or a pod has changed. */
import type { Clock } from "../../clock.ts";
import { dig } from "../../objects.ts";
import type { Store } from "../../store.ts";
import { apply } from "../changes.ts";
import { controllerOf, STATEFUL_SETS, type Pod, type Revision, type StatefulSet } from "../objects.ts";
import { getByKey, keyOf, type Controller } from "../queue.ts";
import { REVISIONS } from "./revisions.ts";
import { syncSet } from "./sync.ts";

/** The StatefulSets that a pod may be of: by its name, and by its controller. */
function setsOf(pod: Pod): readonly string[] {
  const byName = /^(.*)-\d+$/.exec(keyOf(pod))?.[1];
  const owner = controllerOf(pod);
  const byOwner = owner?.kind === "StatefulSet" ? `${pod.metadata.namespace}/${owner.name}` : undefined;
  return [...new Set([byName, byOwner])].flatMap((key) => key ?? []);
}

export function statefulSets(store: Store, clock: Clock): Controller {
  /** Pods by the key of the StatefulSet in their name, then by their own name: a sync reads no others. */
  const podsBySet = new Map<string, Map<string, Pod>>();
  return {
    latencyMs: 3,
    keysFor: ({ type, resource, object, previous }) => {
      if (resource === STATEFUL_SETS) return [keyOf(object)];
      if (resource === "resourcequotas") return store.list(STATEFUL_SETS, object.metadata.namespace).map(keyOf);
      if (resource !== "pods") return [];
      const keys = setsOf(object as Pod);
      const former = previous ? setsOf(previous as Pod) : [];
      for (const key of former) podsBySet.get(key)?.delete(object.metadata.name);
      for (const key of type === "DELETED" ? [] : keys) {
        const pods = podsBySet.get(key) ?? new Map<string, Pod>();
        podsBySet.set(key, pods.set(object.metadata.name, object as Pod));
      }
      return [...new Set([...keys, ...former])];
    },
    reconcile: (key) => {
      const set = getByKey(store, STATEFUL_SETS, key) as StatefulSet | undefined;
      if (!set) return;
      const { namespace } = set.metadata;
      const step = syncSet({
        set,
        pods: [...(podsBySet.get(key)?.values() ?? [])],
        revision: (name) => store.get(REVISIONS, namespace, name) as Revision | undefined,
        room: roomFor(store, namespace),
        now: clock.now(),
      });
      apply(store, step);
      return step.nextMs;
    },
  };
}

/** How many pods a ResourceQuota of the namespace still lets it create. */
function roomFor(store: Store, namespace: string | undefined): number {
  const limits = store.list("resourcequotas", namespace).flatMap((quota) => {
    const hard = dig(quota, "spec", "hard", "pods");
    return hard === undefined ? [] : [Number(hard)];
  });
  if (limits.length === 0) return Infinity;
  return Math.max(0, Math.min(...limits) - store.list("pods", namespace).length);
}
