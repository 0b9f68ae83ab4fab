/**
 * Garbage collection by ownerReferences: background, foreground and orphan. Source:
 * pkg/controller/garbagecollector.
 */
import { put, type KubeObject } from "../objects.ts";
import type { Store, StoreEvent } from "../store.ts";
import { isTerminating } from "./objects.ts";
import type { Controller } from "./queue.ts";

/** Keys are the uids of owners. */
export function garbageCollector(store: Store): Controller {
  /** The last event of each existing object, by uid. */
  const existing = new Map<string, StoreEvent>();
  /** UIDs of dependents by their owner's UID, also of owners that do not exist. */
  const dependents = new Map<string, Set<string>>();
  return {
    latencyMs: 5,
    keysFor: (event) => {
      const { type, resource, object, previous } = event;
      if (resource === "events") return [];
      const { uid } = object.metadata;
      existing.delete(uid);
      for (const owner of ownersOf(previous)) dependents.get(owner)?.delete(uid);
      if (type !== "DELETED") {
        existing.set(uid, event);
        for (const owner of ownersOf(object)) dependents.set(owner, (dependents.get(owner) ?? new Set()).add(uid));
      }
      return [
        ...(type === "DELETED" || isTerminating(object) ? [uid] : []),
        ...ownersOf(object).filter((owner) => type !== "MODIFIED" || !ownersOf(previous).includes(owner)),
      ];
    },
    reconcile: (uid) => {
      const owner = existing.get(uid);
      const owned = [...(dependents.get(uid) ?? [])].flatMap((dependent) => existing.get(dependent) ?? []);
      const finalizers = (owner && isTerminating(owner.object) && owner.object.metadata.finalizers) || [];
      const policy = finalizers.find((name) => name === "orphan" || name === "foregroundDeletion");
      if (owner && !policy) return;
      for (const { resource, object } of owned) {
        const others = object.metadata.ownerReferences?.filter((reference) => reference.uid !== uid) ?? [];
        const { namespace, name } = object.metadata;
        if (policy === "orphan" || others.some((other) => existing.has(other.uid)))
          store.update(resource, put(object, ["metadata", "ownerReferences"], others.length > 0 ? others : undefined));
        else if (!isTerminating(object)) store.remove(resource, namespace, name);
      }
      if (!owner || dependents.get(uid)?.size) return;
      const rest = finalizers.filter((name) => name !== policy);
      store.update(owner.resource, put(owner.object, ["metadata", "finalizers"], rest));
    },
  };
}

function ownersOf(object: KubeObject | undefined): string[] {
  return (object?.metadata.ownerReferences ?? []).map(({ uid }) => uid);
}
