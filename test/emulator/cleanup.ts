/** Deletes the objects in terminating namespaces, and custom resources whose definition is deleted. */
import { put } from "./objects.ts";
import { CRDS } from "./registry.ts";
import type { Store } from "./store.ts";

/** Works in later turns of the event loop. Returns a function that stops it. */
export function startCleanup(store: Store): () => void {
  let timer: NodeJS.Immediate | undefined;
  const emptyNamespaces = (): void => {
    timer = undefined;
    for (const namespace of store.list("namespaces")) {
      if (!namespace.metadata.deletionTimestamp) continue;
      const remaining = store.resources().map((resource) => removeAll(store, resource, namespace.metadata.name));
      if (remaining.every((count) => count === 0))
        store.update("namespaces", put(namespace, ["spec", "finalizers"], []));
    }
  };
  const unsubscribe = store.subscribe(({ type, resource, object }) => {
    if (resource === CRDS && type === "DELETED") setImmediate(() => removeAll(store, object.metadata.name));
    if (resource === "namespaces" || type === "DELETED") timer ??= setImmediate(emptyNamespaces);
  });
  return () => {
    unsubscribe();
    clearImmediate(timer);
  };
}

/** Begins the deletion of all objects that are not terminating yet; returns how many remain. */
function removeAll(store: Store, resource: string, namespace?: string): number {
  for (const { metadata } of store.list(resource, namespace))
    if (!metadata.deletionTimestamp) store.remove(resource, metadata.namespace, metadata.name);
  return store.list(resource, namespace).length;
}
