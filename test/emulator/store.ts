/**
 * Objects in memory under one rising resourceVersion, with a bounded history that serves watches and consistent lists.
 *
 *     create -> live --remove--> gone              (no finalizers, no grace)
 *                    \-remove--> terminating -----> gone   (last finalizer dropped and grace 0)
 */
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { alreadyExists, conflict, notFound, refusal } from "./api-error.ts";
import { createBucket, objectKey } from "./bucket.ts";
import type { Bucket } from "./bucket.ts";
import type { Clock } from "./clock.ts";
import { hasGeneration } from "./kinds.ts";
import { checkPreconditions, finalizersAfter, heldBySpec, isDone, markDeleted, podGrace, specOf, systemOwned } from "./lifecycle.ts";
import { deepFreeze, timestamp } from "./objects.ts";
import type { Draft, KubeObject, Metadata } from "./objects.ts";

export { ApiError } from "./api-error.ts";
export type { KubeObject } from "./objects.ts";

/** "<plural>.<group>"; the plural alone for the core group. */
export type ResourceKey = string;

export interface StoreEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly resource: ResourceKey;
  readonly object: KubeObject;
  /** What the object was before; none when it was added. */
  readonly previous?: KubeObject;
  readonly resourceVersion: number;
}

export interface UpdateOptions {
  readonly expectedResourceVersion?: string;
  /** Answers what the update would leave, and leaves nothing. */
  readonly dryRun?: boolean;
}

export interface RemoveOptions {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: string;
}

export interface Store {
  get(resource: ResourceKey, namespace: string | undefined, name: string): KubeObject | undefined;
  /** In order of namespace and name. `at` answers as of that resourceVersion; undefined-safe only inside the history (see `since`). */
  list(resource: ResourceKey, namespace?: string, at?: number): KubeObject[];
  /** The newest resourceVersion given out. */
  version(): number;
  /** Events after `resourceVersion`; throws Expired (410) when the history no longer reaches back so far. */
  since(resourceVersion: number): readonly StoreEvent[];
  /** Throws AlreadyExists. The object is frozen and filled: uid (unless given), resourceVersion, creationTimestamp, generation. */
  create(resource: ResourceKey, object: Draft): KubeObject;
  /** Replaces all but what the system owns. A no-op keeps the resourceVersion; throws NotFound and Conflict. */
  update(resource: ResourceKey, object: Draft, options?: UpdateOptions): KubeObject;
  /** Starts or ends the deletion; answers the object as it is left. Pods get their grace period unless `gracePeriodSeconds` says otherwise. */
  remove(resource: ResourceKey, namespace: string | undefined, name: string, options?: RemoveOptions): KubeObject;
  /** Calls back synchronously after each commit; listeners defer their work. The answer unsubscribes. */
  subscribe(listener: (event: StoreEvent) => void): () => void;
}

const DEFAULT_HISTORY = 50_000;

/** An empty store whose history holds at least `historyLength` events. */
export function createStore(clock: Clock, historyLength = DEFAULT_HISTORY): Store {
  const buckets = new Map<ResourceKey, Bucket>();
  const listeners = new Set<(event: StoreEvent) => void>();
  let history: StoreEvent[] = [];
  let version = 0;
  let forgotten = 0;

  const bucketOf = (resource: ResourceKey): Bucket => {
    const bucket = buckets.get(resource) ?? createBucket();
    buckets.set(resource, bucket);
    return bucket;
  };

  const commit = (type: StoreEvent["type"], resource: ResourceKey, draft: KubeObject, previous?: KubeObject): KubeObject => {
    version += 1;
    const object = deepFreeze({ ...draft, metadata: { ...draft.metadata, resourceVersion: String(version) } });
    const key = objectKey(object.metadata.namespace, object.metadata.name);
    if (type === "DELETED") bucketOf(resource).delete(key);
    else bucketOf(resource).set(key, object);
    const event: StoreEvent = { type, resource, object, ...(previous && { previous }), resourceVersion: version };
    history.push(event);
    if (history.length > 2 * historyLength) {
      history = history.slice(historyLength);
      forgotten = (history[0]?.resourceVersion ?? 1) - 1;
    }
    for (const listener of listeners) listener(event);
    return object;
  };

  const existing = (resource: ResourceKey, namespace: string | undefined, name: string): KubeObject => {
    const object = bucketOf(resource).get(objectKey(namespace, name));
    if (!object) throw notFound(resource, name);
    return object;
  };

  const since = (from: number): readonly StoreEvent[] => {
    if (from < forgotten) throw refusal("Expired", `too old resource version: ${from} (${forgotten + 1})`);
    let low = history.length;
    while (low > 0 && (history[low - 1]?.resourceVersion ?? 0) > from) low -= 1;
    return history.slice(low);
  };

  return {
    get: (resource, namespace, name) => bucketOf(resource).get(objectKey(namespace, name)),

    list: (resource, namespace, at) => {
      const prefix = namespace ? `${namespace}/` : "";
      if (at === undefined || at >= version) return bucketOf(resource).range(prefix);
      const undone = since(at).filter((event) => event.resource === resource);
      if (undone.length === 0) return bucketOf(resource).range(prefix);
      const then = createBucket();
      for (const object of bucketOf(resource).range("")) then.set(objectKey(object.metadata.namespace, object.metadata.name), object);
      for (const { object, previous } of undone.toReversed()) {
        const key = objectKey(object.metadata.namespace, object.metadata.name);
        if (previous) then.set(key, previous);
        else then.delete(key);
      }
      return then.range(prefix);
    },

    version: () => version,
    since,

    create: (resource, draft) => {
      const { name = "", namespace } = draft.metadata;
      if (bucketOf(resource).get(objectKey(namespace, name))) throw alreadyExists(resource, name);
      const { deletionTimestamp: _, deletionGracePeriodSeconds: __, ...given } = draft.metadata;
      const metadata: Metadata = {
        ...given,
        name,
        uid: given.uid || randomUUID(),
        creationTimestamp: timestamp(clock.now()),
        resourceVersion: "",
        ...(hasGeneration(resource) && { generation: 1 }),
      };
      return commit("ADDED", resource, { ...draft, metadata });
    },

    update: (resource, draft, options = {}) => {
      const current = existing(resource, draft.metadata.namespace, draft.metadata.name ?? "");
      const { expectedResourceVersion } = options;
      if (expectedResourceVersion !== undefined && expectedResourceVersion !== current.metadata.resourceVersion)
        throw conflict(resource, current.metadata.name);
      const object = { ...draft, metadata: { ...draft.metadata, ...systemOwned(current.metadata) } };
      if (isDeepStrictEqual(object, current)) return current;
      if (current.metadata.generation !== undefined && !isDeepStrictEqual(specOf(object), specOf(current)))
        object.metadata.generation = current.metadata.generation + 1;
      if (options.dryRun) return object;
      if (!isDone(object)) return commit("MODIFIED", resource, object, current);
      // The event shows the object as it was stored last, the answer as it was wanted.
      commit("DELETED", resource, current, current);
      return deepFreeze(object);
    },

    remove: (resource, namespace, name, options = {}) => {
      const current = existing(resource, namespace, name);
      checkPreconditions(current, options);
      const grace = resource === "pods" ? podGrace(current, options.gracePeriodSeconds) : 0;
      const finalizers = finalizersAfter(current.metadata.finalizers ?? [], options.propagationPolicy);
      const isFree = grace === 0 && finalizers.length === 0 && heldBySpec(current).length === 0;
      if (isFree && resource !== "pods") return commit("DELETED", resource, current, current);
      const marked = markDeleted(current, grace, finalizers, clock.now());
      const left = marked === current ? current : commit("MODIFIED", resource, marked, current);
      // A pod's deletion is written down even when it takes no time.
      return isFree ? commit("DELETED", resource, left, left) : left;
    },

    subscribe: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
