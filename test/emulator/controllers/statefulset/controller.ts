/** The StatefulSet controller: reacts to sets and their pods, a few milliseconds late as the real one, and carries out the plan. */
import type { Clock } from "../../clock.ts";
import { put } from "../../objects.ts";
import { objectSelector } from "../../selectors.ts";
import type { Store } from "../../store.ts";
import { controllerOf, controllerReference, isTerminating, SETS, type Pod, type StatefulSet } from "../objects.ts";
import { find, keyOf, type Controller } from "../queue.ts";
import { availableAt, planSync, statusOf } from "./plan.ts";
import { syncRevisions } from "./revisions.ts";

export function statefulSets(store: Store, clock: Clock): Controller {
  /** Pods by the key of the set that they are named after, and by name: a sync reads no others. */
  const families = new Map<string, Map<string, Pod>>();
  return {
    reactionMs: 3,
    concerns: ({ type, resource, object }) => {
      if (resource === SETS) return [keyOf(object)];
      const key = resource === "pods" ? /^(.*)-\d+$/.exec(keyOf(object))?.[1] : undefined;
      if (key === undefined) return [];
      const family = families.get(key) ?? new Map<string, Pod>();
      families.set(key, family);
      if (type === "DELETED") family.delete(object.metadata.name);
      else family.set(object.metadata.name, object as Pod);
      return [key];
    },
    handle: (key) => {
      const set = find(store, SETS, key) as StatefulSet | undefined;
      if (!set || isTerminating(set)) return;
      const now = clock.now();
      const family = families.get(key) ?? new Map<string, Pod>();
      const pods = [...family.values()].flatMap((pod) => claim(store, set, pod) ?? []);
      const revisions = syncRevisions(store, set);
      const { create, remove } = planSync(set, pods, revisions, now);
      // A name that another's pod has is waited for.
      for (const pod of create.filter(({ metadata }) => !family.has(metadata.name)))
        store.create("pods", { ...pod, status: { phase: "Pending", qosClass: "BestEffort" } });
      for (const { metadata } of remove) store.remove("pods", metadata.namespace, metadata.name);
      // Last, so that who sees the generation observed sees its pods come and go, too.
      store.update(SETS, { ...set, status: statusOf(set, pods, revisions, now) });
      const next = Math.min(...pods.map((pod) => availableAt(pod, set.spec.minReadySeconds)).filter((at) => at > now));
      return next === Infinity ? undefined : next - now;
    },
  };
}

/** The pod, if it is the set's; one that matches and has no owner yet is adopted. Source: PodControllerRefManager. */
function claim(store: Store, set: StatefulSet, pod: Pod): Pod | undefined {
  const owner = controllerOf(pod);
  if (owner) return owner.uid === set.metadata.uid ? pod : undefined;
  const { labels = {}, ownerReferences = [] } = pod.metadata;
  if (isTerminating(pod) || !objectSelector(set.spec.selector)(labels)) return undefined;
  return store.update("pods", put(pod, ["metadata", "ownerReferences"], [...ownerReferences, controllerReference(set)])) as Pod;
}
