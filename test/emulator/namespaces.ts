/** What a control plane does on its own for namespaces and definitions: emptying what is deleted, establishing CRDs. */
import { isEstablished } from "./crd/kinds.ts";
import type { Clock } from "./clock.ts";
import { listOf, dig, put, timestamp } from "./objects.ts";
import type { KubeObject } from "./objects.ts";
import { CRDS } from "./registry.ts";
import type { Registry } from "./registry.ts";
import type { Store, StoreEvent } from "./store.ts";

/** Works in later turns of the event loop; the answer stops it. */
export function runNamespaces(store: Store, registry: Registry, clock: Clock): () => void {
  const terminating = new Set<string>();
  const waiting = new Set<() => void>();
  let timer: NodeJS.Immediate | undefined;
  const later = (work: () => void): void => {
    waiting.add(work);
    timer ??= setImmediate(() => {
      timer = undefined;
      const due = [...waiting];
      waiting.clear();
      for (const one of due) one();
    });
  };
  const sweepAll = (): void => {
    for (const name of terminating) sweep(store, registry, name);
  };

  const onEvent = ({ type, resource, object }: StoreEvent): void => {
    const { name, namespace, deletionTimestamp } = object.metadata;
    if (resource === "namespaces" && type === "DELETED") terminating.delete(name);
    else if (resource === "namespaces" && deletionTimestamp) {
      terminating.add(name);
      later(sweepAll);
    } else if (type === "DELETED" && namespace && terminating.has(namespace)) later(sweepAll);
    else if (resource === CRDS && type !== "DELETED" && !isEstablished(object)) later(() => establish(store, clock, name));
    if (resource === CRDS && type === "DELETED") later(() => removeInstances(store, object));
  };
  const unsubscribe = store.subscribe(onEvent);
  return () => {
    unsubscribe();
    clearImmediate(timer);
  };
}

function sweep(store: Store, registry: Registry, namespace: string): void {
  const resources = new Set(
    registry
      .all()
      .filter((kind) => kind.namespaced)
      .map((kind) => kind.resource),
  );
  for (const resource of resources)
    for (const { metadata } of store.list(resource, namespace))
      if (!metadata.deletionTimestamp) store.remove(resource, namespace, metadata.name);
  if ([...resources].some((resource) => store.list(resource, namespace).length > 0)) return;
  const object = store.get("namespaces", undefined, namespace);
  if (object) store.update("namespaces", put(object, ["spec", "finalizers"], []));
}

function establish(store: Store, clock: Clock, name: string): void {
  const definition = store.get(CRDS, undefined, name);
  if (!definition || isEstablished(definition)) return;
  const lastTransitionTime = timestamp(clock.now());
  const stored = listOf(dig(definition, "spec", "versions")).filter((version) => dig(version, "storage") === true);
  const status = {
    acceptedNames: dig(definition, "spec", "names"),
    conditions: [
      { type: "NamesAccepted", status: "True", reason: "NoConflicts", message: "no conflicts found", lastTransitionTime },
      {
        type: "Established",
        status: "True",
        reason: "InitialNamesAccepted",
        message: "the initial names have been accepted",
        lastTransitionTime,
      },
    ],
    storedVersions: stored.map((version) => dig(version, "name")),
  };
  store.update(CRDS, put(definition, ["status"], status));
}

function removeInstances(store: Store, definition: KubeObject): void {
  const { name: resource } = definition.metadata;
  for (const { metadata } of store.list(resource)) store.remove(resource, metadata.namespace, metadata.name);
}
