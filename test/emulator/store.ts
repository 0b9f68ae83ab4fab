/**
 * Objects in memory with one increasing resourceVersion. A bounded history serves watches and consistent
 * lists.
 *
 *     create -> live --remove--> gone              (no finalizers, no grace)
 *                    \-remove--> terminating -----> gone   (last finalizer dropped and grace 0)
 */
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { alreadyExists, conflict, notFound, statusError } from "./api-error.ts";
import type { Clock } from "./clock.ts";
import { hasGeneration } from "./kinds.ts";
import { checkDeletePreconditions, isRemovable, markDeleted, specOf, type RemoveOptions } from "./lifecycle.ts";
import { deepFreeze, timestamp, type Draft, type KubeObject, type Metadata } from "./objects.ts";

export { ApiError } from "./api-error.ts";
export type { KubeObject } from "./objects.ts";

/** "<plural>.<group>"; the plural alone for the core group. */
type ResourceKey = string;

export interface StoreEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly resource: ResourceKey;
  readonly object: KubeObject;
  /** The object before the event; undefined for ADDED. */
  readonly previous?: KubeObject;
}

/**
 * The objects of one resource; their sorted keys, until one is added or removed; and by namespace the lists, until one
 * changes.
 */
interface Bucket {
  readonly objects: Map<string, KubeObject>;
  keys?: readonly string[] | undefined;
  readonly lists: Map<string, readonly KubeObject[]>;
}

export const objectKey = (namespace: string | undefined, name: string): string =>
  namespace ? `${namespace}/${name}` : name;
const keyOf = ({ metadata }: KubeObject): string => objectKey(metadata.namespace, metadata.name);

function sortedObjects(bucket: Bucket, namespace = ""): readonly KubeObject[] {
  const known = bucket.lists.get(namespace);
  if (known) return known;
  bucket.keys ??= [...bucket.objects.keys()].toSorted();
  const prefix = objectKey(namespace, "");
  const list = bucket.keys.filter((key) => key.startsWith(prefix)).flatMap((key) => bucket.objects.get(key) ?? []);
  bucket.lists.set(namespace, list);
  return list;
}

export type Store = ReturnType<typeof createStore>;

/** An empty store whose history holds at least `historyLength` events. */
export function createStore(clock: Clock, historyLength = 50_000) {
  const buckets = new Map<ResourceKey, Bucket>();
  const listeners = new Set<(event: StoreEvent) => void>();
  let history: StoreEvent[] = [];
  let version = 0;

  const bucketOf = (resource: ResourceKey): Bucket => {
    const bucket = buckets.get(resource) ?? { objects: new Map(), lists: new Map() };
    buckets.set(resource, bucket);
    return bucket;
  };
  const get = (resource: ResourceKey, namespace: string | undefined, name: string): KubeObject | undefined =>
    bucketOf(resource).objects.get(objectKey(namespace, name));

  const commit = (
    type: StoreEvent["type"],
    resource: ResourceKey,
    draft: KubeObject,
    previous?: KubeObject,
  ): KubeObject => {
    version += 1;
    const object = deepFreeze({ ...draft, metadata: { ...draft.metadata, resourceVersion: String(version) } });
    const bucket = bucketOf(resource);
    if (type === "DELETED") bucket.objects.delete(keyOf(object));
    else bucket.objects.set(keyOf(object), object);
    if (type !== "MODIFIED") bucket.keys = undefined;
    bucket.lists.clear();
    const event: StoreEvent = { type, resource, object, ...(previous && { previous }) };
    history.push(event);
    if (history.length > 2 * historyLength) history = history.slice(historyLength);
    for (const listener of listeners) listener(event);
    return object;
  };

  /** Returns the events after `resourceVersion`; throws Expired (410) if the history no longer has them. */
  const eventsSince = (resourceVersion: number): readonly StoreEvent[] => {
    if (resourceVersion === version) return [];
    // Every event has a version of its own.
    const oldest = version - history.length;
    if (resourceVersion < oldest)
      throw statusError("Expired", `too old resource version: ${resourceVersion} (${oldest + 1})`);
    return history.slice(resourceVersion - oldest);
  };

  /**
   * Sorted by namespace and name, as of the resourceVersion `at` (default: now): the same array until an object of the
   * resource changes. Throws as `eventsSince` does.
   */
  const list = (resource: ResourceKey, namespace?: string, at: number | undefined = version): readonly KubeObject[] => {
    const bucket = bucketOf(resource);
    if (at === version) return sortedObjects(bucket, namespace);
    const undone = eventsSince(at).filter((event) => event.resource === resource);
    if (undone.length === 0) return sortedObjects(bucket, namespace);
    const then = new Map(bucket.objects);
    for (const { object, previous } of undone.toReversed()) {
      if (previous) then.set(keyOf(previous), previous);
      else then.delete(keyOf(object));
    }
    return sortedObjects({ objects: then, lists: new Map() }, namespace);
  };

  return {
    get,
    eventsSince,
    /** The newest resourceVersion. */
    version: () => version,
    /** Every resource that has been read or written. */
    resources: () => [...buckets.keys()],

    list,

    /**
     * Stores a new object and returns it, frozen, with uid (unless given), resourceVersion, creationTimestamp
     * and generation. Throws AlreadyExists.
     */
    create: (resource: ResourceKey, draft: Draft): KubeObject => {
      const { deletionTimestamp: _, deletionGracePeriodSeconds: __, name = "", uid, ...given } = draft.metadata;
      if (get(resource, given.namespace, name)) throw alreadyExists(resource, name);
      const metadata: Metadata = {
        ...given,
        name,
        uid: uid || randomUUID(),
        creationTimestamp: timestamp(clock.now()),
        resourceVersion: "",
        ...(hasGeneration(resource) && { generation: 1 }),
      };
      return commit("ADDED", resource, { ...draft, metadata });
    },

    /**
     * Replaces everything but the system-owned metadata. A no-op keeps the resourceVersion, `dryRun` stores
     * nothing. Throws NotFound and Conflict.
     */
    update: (
      resource: ResourceKey,
      draft: Draft,
      options: { expectedResourceVersion?: string; dryRun?: boolean } = {},
    ): KubeObject => {
      const { namespace, name = "" } = draft.metadata;
      const current = get(resource, namespace, name);
      if (!current) throw notFound(resource, name);
      const { resourceVersion, generation } = current.metadata;
      if ((options.expectedResourceVersion ?? resourceVersion) !== resourceVersion) throw conflict(resource, name);
      const { labels: _, annotations: __, ownerReferences: ___, finalizers: ____, ...systemOwned } = current.metadata;
      const object = { ...draft, metadata: { ...draft.metadata, ...systemOwned } };
      if (isDeepStrictEqual(object, current)) return current;
      if (generation && hasGeneration(resource) && !isDeepStrictEqual(specOf(object), specOf(current)))
        object.metadata.generation = generation + 1;
      if (options.dryRun) return object;
      if (!isRemovable(object)) return commit("MODIFIED", resource, object, current);
      // The event carries the object as last stored, the result as requested.
      commit("DELETED", resource, current, current);
      return deepFreeze(object);
    },

    /**
     * Begins or completes a deletion and returns the object's last state. A pod keeps its grace period unless
     * given.
     */
    remove: (
      resource: ResourceKey,
      namespace: string | undefined,
      name: string,
      options: RemoveOptions = {},
    ): KubeObject => {
      const current = get(resource, namespace, name);
      if (!current) throw notFound(resource, name);
      checkDeletePreconditions(current, options);
      const marked = markDeleted(current, options, clock.now());
      const isGone = isRemovable(marked);
      // A pod's deletion is recorded even if it is immediate.
      const isRecorded = marked !== current && (!isGone || resource === "pods");
      const last = isRecorded ? commit("MODIFIED", resource, marked, current) : current;
      return isGone ? commit("DELETED", resource, last, last) : last;
    },

    /**
     * Calls `listener` synchronously after each commit; it must defer its work. Returns a function that
     * unsubscribes.
     */
    subscribe: (listener: (event: StoreEvent) => void): (() => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
