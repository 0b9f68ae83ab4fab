/** An index over the store that follows its changes, so that a controller finds what it wants without reading every object. */
import type { KubeObject } from "../objects.ts";
import type { Store, StoreEvent } from "../store.ts";

export interface Index {
  get(key: string): KubeObject[];
  has(key: string): boolean;
  stop(): void;
}

/** Files every later version of every object under `keysOf` it, and what there is of `existing` resources now. */
export function indexBy(
  store: Store,
  existing: readonly string[],
  keysOf: (resource: string, object: KubeObject) => readonly string[],
): Index {
  const buckets = new Map<string, Map<string, KubeObject>>();
  const filedUnder = new Map<string, readonly string[]>();
  const file = (event: Pick<StoreEvent, "type" | "resource" | "object">): void => {
    const { uid } = event.object.metadata;
    const keys = event.type === "DELETED" ? [] : keysOf(event.resource, event.object);
    for (const key of filedUnder.get(uid) ?? []) {
      if (keys.includes(key)) continue;
      const bucket = buckets.get(key);
      bucket?.delete(uid);
      if (bucket?.size === 0) buckets.delete(key);
    }
    for (const key of keys) {
      const bucket = buckets.get(key) ?? new Map<string, KubeObject>();
      bucket.set(uid, event.object);
      buckets.set(key, bucket);
    }
    if (keys.length > 0) filedUnder.set(uid, keys);
    else filedUnder.delete(uid);
  };
  for (const resource of existing) for (const object of store.list(resource)) file({ type: "ADDED", resource, object });
  return {
    get: (key) => [...(buckets.get(key)?.values() ?? [])],
    has: (key) => buckets.has(key),
    stop: store.subscribe(file),
  };
}
