/** What a cluster has and does of itself: nodes and namespaces to begin with, and the removal of what lost its namespace or definition. */
import type { Clock } from "./clock.ts";
import { withDefaults } from "./defaults.ts";
import { put, timestamp } from "./objects.ts";
import { CRDS } from "./registry.ts";
import type { Store } from "./store.ts";

/** Two namespaces, and a node in each of three zones: node-1 in zone-1 and so on, ready. */
export function seed(store: Store, clock: Clock): void {
  for (const name of ["default", "kube-system"])
    store.create("namespaces", withDefaults("namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } }));
  const time = timestamp(clock.now());
  const ready = { type: "Ready", status: "True", reason: "Simulated", lastHeartbeatTime: time, lastTransitionTime: time };
  const status = { conditions: [ready], nodeInfo: { kubeletVersion: "" } };
  for (const n of [1, 2, 3]) {
    const metadata = { name: `node-${n}`, labels: { "topology.kubernetes.io/zone": `zone-${n}` } };
    store.create("nodes", { apiVersion: "v1", kind: "Node", metadata, spec: {}, status });
  }
}

/** Works in later turns of the event loop; the answer stops it. */
export function runUpkeep(store: Store): () => void {
  let timer: NodeJS.Immediate | undefined;
  const emptyAll = (): void => {
    timer = undefined;
    for (const namespace of store.list("namespaces")) {
      if (!namespace.metadata.deletionTimestamp) continue;
      const left = store.resources().map((resource) => removeAll(store, resource, namespace.metadata.name));
      if (left.every((count) => count === 0)) store.update("namespaces", put(namespace, ["spec", "finalizers"], []));
    }
  };
  const unsubscribe = store.subscribe(({ type, resource, object }) => {
    if (resource === CRDS && type === "DELETED") setImmediate(() => removeAll(store, object.metadata.name));
    if (resource === "namespaces" || type === "DELETED") timer ??= setImmediate(emptyAll);
  });
  return () => {
    unsubscribe();
    clearImmediate(timer);
  };
}

/** Starts the deletion of what is not deleted yet; answers how many are left. */
function removeAll(store: Store, resource: string, namespace?: string): number {
  for (const { metadata } of store.list(resource, namespace))
    if (!metadata.deletionTimestamp) store.remove(resource, metadata.namespace, metadata.name);
  return store.list(resource, namespace).length;
}
