/**
 * The StatefulSet controller: executes the plan (plan.ts) a few milliseconds after a StatefulSet or a pod has
 * changed. A pod with the annotation `sim/kept` cannot be deleted by it, as if a webhook of others refused that.
 */
import type { Clock } from "../../clock.ts";
import { dig, type OwnerReference, put } from "../../objects.ts";
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
import { availableAt, planSync, statusOf, withIdentity } from "./plan.ts";
import { syncRevisions } from "./revisions.ts";

const NOTHING = { create: [], remove: [], identify: [] };

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
      const now = clock.now();
      const candidates = podsBySet.get(key) ?? new Map<string, Pod>();
      const pods = [...candidates.values()].flatMap((pod) => claim(store, set, pod) ?? []);
      const revisions = syncRevisions(store, set);
      const isTaken = (name: string): boolean => candidates.has(name);
      // Of a set that is being deleted only the status is kept up.
      const { create, remove, identify } = isTerminating(set) ? NOTHING : planSync(set, pods, revisions, now, isTaken);
      const created = create.slice(0, roomFor(store, set));
      for (const pod of created) store.create("pods", { ...pod, status: { phase: "Pending", qosClass: "BestEffort" } });
      for (const pod of identify) store.update("pods", withIdentity(pod));
      for (const { metadata } of remove)
        if (metadata.annotations?.["sim/kept"] === undefined) store.remove("pods", metadata.namespace, metadata.name);
      // The status comes last: once a client sees the generation observed, it also sees the changes to pods.
      store.update(STATEFUL_SETS, { ...set, status: statusOf(set, pods, revisions, now) });
      const next = Math.min(...pods.map((pod) => availableAt(pod, set.spec.minReadySeconds)).filter((at) => at > now));
      return next === Infinity ? undefined : next - now;
    },
  };
}

/** How many pods a ResourceQuota of the namespace still lets it create. */
function roomFor(store: Store, { metadata: { namespace } }: StatefulSet): number {
  const limits = store.list("resourcequotas", namespace).flatMap((quota) => {
    const hard = dig(quota, "spec", "hard", "pods");
    return hard === undefined ? [] : [Number(hard)];
  });
  if (limits.length === 0) return Infinity;
  return Math.max(0, Math.min(...limits) - store.list("pods", namespace).length);
}

/**
 * Returns the pod if the set controls it; adopts one without an owner that matches, and releases one that no longer
 * does. Source: PodControllerRefManager.
 */
function claim(store: Store, set: StatefulSet, pod: Pod): Pod | undefined {
  const owner = controllerOf(pod);
  const { labels = {}, ownerReferences = [], name } = pod.metadata;
  const fits = objectSelector(set.spec.selector)(labels) && name.replace(/-\d+$/, "") === set.metadata.name;
  const own = (references: readonly OwnerReference[]): Pod =>
    store.update(
      "pods",
      put(pod, ["metadata", "ownerReferences"], references.length > 0 ? references : undefined),
    ) as Pod;
  if (owner) {
    if (owner.uid !== set.metadata.uid) return undefined;
    if (fits) return pod;
    if (!isTerminating(set)) own(ownerReferences.filter(({ uid }) => uid !== owner.uid));
    return undefined;
  }
  if (isTerminating(pod) || isTerminating(set) || !fits) return undefined;
  return own([...ownerReferences, controllerReference(set)]);
}
