/** Which pods are a StatefulSet's: it adopts orphans that match and have its name, and lets go of its own that match no more. Source: PodControllerRefManager. */
import { objectSelector } from "../../selectors.ts";
import type { Store } from "../../store.ts";
import { controllerReference, isTerminating, type Pod, type StatefulSet } from "../objects.ts";
import { ordinalOf } from "./identity.ts";

/** The set's pods after claiming. */
export function claimPods(store: Store, set: StatefulSet, owned: readonly Pod[], orphans: readonly Pod[]): Pod[] {
  const selects = objectSelector(set.spec.selector);
  const fits = (pod: Pod): boolean => selects(pod.metadata.labels ?? {}) && ordinalOf(set, pod) !== undefined;
  if (isTerminating(set)) return owned.filter(fits);
  for (const pod of owned) if (!fits(pod)) release(store, set, pod);
  const adopted = orphans.filter((pod) => fits(pod) && !isTerminating(pod)).map((pod) => adopt(store, set, pod));
  return [...owned.filter(fits), ...adopted];
}

function adopt(store: Store, set: StatefulSet, pod: Pod): Pod {
  const ownerReferences = [...(pod.metadata.ownerReferences ?? []), controllerReference(set)];
  return store.update("pods", { ...pod, metadata: { ...pod.metadata, ownerReferences } }) as Pod;
}

function release(store: Store, set: StatefulSet, pod: Pod): void {
  if (isTerminating(pod)) return;
  const { ownerReferences = [], ...metadata } = pod.metadata;
  const kept = ownerReferences.filter((reference) => reference.uid !== set.metadata.uid);
  store.update("pods", { ...pod, metadata: { ...metadata, ...(kept.length > 0 && { ownerReferences: kept }) } });
}
