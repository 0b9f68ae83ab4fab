/** Garbage collection by ownerReferences, background, foreground and orphaning. Source: pkg/controller/garbagecollector. */
import type { Clock } from "../clock.ts";
import type { KubeObject } from "../objects.ts";
import { BUILT_IN, resourceKey } from "../kinds.ts";
import type { Store } from "../store.ts";
import { indexBy } from "./index-by.ts";
import { isTerminating } from "./objects.ts";
import { createQueue } from "./queue.ts";

const REACTION_MS = 5;

/** Runs until the answer is called. */
export function runGarbageCollector(store: Store, clock: Clock): () => void {
  const resources = new Map<string, string>();
  const index = indexBy(store, BUILT_IN.map(resourceKey), (resource, { metadata }) => {
    resources.set(metadata.uid, resource);
    return [`self/${metadata.uid}`, ...(metadata.ownerReferences ?? []).map(({ uid }) => `owner/${uid}`)];
  });
  const isThere = (uid: string): boolean => index.has(`self/${uid}`);
  const dependentsOf = (uid: string): KubeObject[] => index.get(`owner/${uid}`);
  const resourceOf = (object: KubeObject): string => resources.get(object.metadata.uid) ?? "";
  const dropFinalizer = (object: KubeObject, finalizer: string): void => {
    const finalizers = (object.metadata.finalizers ?? []).filter((name) => name !== finalizer);
    store.update(resourceOf(object), { ...object, metadata: { ...object.metadata, finalizers } });
  };
  const remove = (object: KubeObject): void => {
    const { namespace, name, uid } = object.metadata;
    if (!isTerminating(object)) store.remove(resourceOf(object), namespace, name, { uid });
  };
  const disown = (object: KubeObject, uids: readonly string[]): void => {
    const { ownerReferences = [], ...metadata } = object.metadata;
    const kept = ownerReferences.filter(({ uid }) => !uids.includes(uid));
    store.update(resourceOf(object), { ...object, metadata: { ...metadata, ...(kept.length > 0 && { ownerReferences: kept }) } });
  };

  /** An object lives as long as one of its owners does; references to the others go. */
  const collect = (dependent: KubeObject): void => {
    const owners = (dependent.metadata.ownerReferences ?? []).map(({ uid }) => uid);
    const gone = owners.filter((uid) => !isThere(uid));
    if (gone.length === owners.length) remove(dependent);
    else if (gone.length > 0) disown(dependent, gone);
  };

  const queue = createQueue(clock, REACTION_MS, (uid) => {
    const [owner] = index.get(`self/${uid}`);
    const dependents = dependentsOf(uid);
    if (!owner) return dependents.forEach(collect);
    if (!isTerminating(owner)) return;
    const { finalizers = [] } = owner.metadata;
    if (finalizers.includes("orphan")) {
      for (const dependent of dependents) disown(dependent, [uid]);
      dropFinalizer(owner, "orphan");
    } else if (finalizers.includes("foregroundDeletion")) {
      const blocking = dependents.filter(({ metadata }) =>
        metadata.ownerReferences?.some((ref) => ref.uid === uid && ref.blockOwnerDeletion),
      );
      for (const dependent of dependents) remove(dependent);
      if (blocking.length === 0) dropFinalizer(owner, "foregroundDeletion");
    }
  });

  const unsubscribe = store.subscribe(({ type, object }) => {
    const { uid, ownerReferences = [], finalizers } = object.metadata;
    if (type === "DELETED" || (isTerminating(object) && finalizers)) queue.add(uid);
    for (const owner of ownerReferences) {
      const [parent] = index.get(`self/${owner.uid}`);
      if (type !== "MODIFIED" && (!parent || isTerminating(parent))) queue.add(owner.uid);
    }
    if (type === "DELETED") resources.delete(uid);
  });
  return () => {
    unsubscribe();
    index.stop();
    queue.stop();
  };
}
