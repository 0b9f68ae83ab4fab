/**
 * The StatefulSet controller: executes the plan (plan.ts) a few milliseconds after a StatefulSet or a pod has
 * changed.
 */
import type { Clock } from "../../clock.ts";
import { put } from "../../objects.ts";
import { objectSelector } from "../../selectors.ts";
import type { Store } from "../../store.ts";
import {
  controllerOf,
  controllerReference,
  isTerminating,
  STATEFUL_SETS,
  type Pod,
  type StatefulSet,
} from "../objects.ts";
import { getByKey, keyOf, type Controller } from "../queue.ts";
import { availableAt, planSync, statusOf } from "./plan.ts";
import { syncRevisions } from "./revisions.ts";

export function statefulSets(store: Store, clock: Clock): Controller {
  /** Pods by the key of the StatefulSet in their name, then by their own name: a sync reads no others. */
  const podsBySet = new Map<string, Map<string, Pod>>();
  return {
    latencyMs: 3,
    keysFor: ({ type, resource, object }) => {
      if (resource === STATEFUL_SETS) return [keyOf(object)];
      const key = resource === "pods" ? /^(.*)-\d+$/.exec(keyOf(object))?.[1] : undefined;
      if (key === undefined) return [];
      const pods = podsBySet.get(key) ?? new Map<string, Pod>();
      podsBySet.set(key, pods);
      if (type === "DELETED") pods.delete(object.metadata.name);
      else pods.set(object.metadata.name, object as Pod);
      return [key];
    },
    reconcile: (key) => {
      const set = getByKey(store, STATEFUL_SETS, key) as StatefulSet | undefined;
      if (!set || isTerminating(set)) return;
      const now = clock.now();
      const candidates = podsBySet.get(key) ?? new Map<string, Pod>();
      const pods = [...candidates.values()].flatMap((pod) => claim(store, set, pod) ?? []);
      const revisions = syncRevisions(store, set);
      const { create, remove } = planSync(set, pods, revisions, now);
      // A name that another owner's pod uses is created once it is free.
      for (const pod of create.filter(({ metadata }) => !candidates.has(metadata.name)))
        store.create("pods", { ...pod, status: { phase: "Pending", qosClass: "BestEffort" } });
      for (const { metadata } of remove) store.remove("pods", metadata.namespace, metadata.name);
      // The status comes last: once a client sees the generation observed, it also sees the changes to pods.
      store.update(STATEFUL_SETS, { ...set, status: statusOf(set, pods, revisions, now) });
      const next = Math.min(...pods.map((pod) => availableAt(pod, set.spec.minReadySeconds)).filter((at) => at > now));
      return next === Infinity ? undefined : next - now;
    },
  };
}

/**
 * Returns the pod if the set controls it, and adopts a matching pod without an owner. Source:
 * PodControllerRefManager.
 */
function claim(store: Store, set: StatefulSet, pod: Pod): Pod | undefined {
  const owner = controllerOf(pod);
  if (owner) return owner.uid === set.metadata.uid ? pod : undefined;
  const { labels = {}, ownerReferences = [] } = pod.metadata;
  if (isTerminating(pod) || !objectSelector(set.spec.selector)(labels)) return undefined;
  return store.update(
    "pods",
    put(pod, ["metadata", "ownerReferences"], [...ownerReferences, controllerReference(set)]),
  ) as Pod;
}
