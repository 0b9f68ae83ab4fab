/**
 * Objects in memory under one rising resourceVersion, with a bounded history that serves watches and consistent lists.
 *
 *     create -> live --remove--> gone              (no finalizers, no grace)
 *                    \-remove--> terminating -----> gone   (last finalizer dropped and grace 0)
 */
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { alreadyExists, conflict, notFound, refusal } from "./api-error.ts";
import type { Clock } from "./clock.ts";
import { hasGeneration } from "./kinds.ts";
import { checkPreconditions, isDone, markDeleted, specOf } from "./lifecycle.ts";
import { deepFreeze, timestamp, type Draft, type KubeObject, type Metadata } from "./objects.ts";

export { ApiError } from "./api-error.ts";
export type { KubeObject } from "./objects.ts";

/** "<plural>.<group>"; the plural alone for the core group. */
type ResourceKey = string;

export interface StoreEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly resource: ResourceKey;
  readonly object: KubeObject;
  /** What the object was before; none when it was added. */
  readonly previous?: KubeObject;
}

export type RemoveOptions = Partial<Record<"uid" | "resourceVersion" | "propagationPolicy", string>> & { gracePeriodSeconds?: number };

/** The objects of one resource, and their keys in order since the last one came or went. */
interface Bucket {
  readonly objects: Map<string, KubeObject>;
  keys?: readonly string[] | undefined;
}

export const objectKey = (namespace: string | undefined, name: string): string => (namespace ? `${namespace}/${name}` : name);
const keyOf = ({ metadata }: KubeObject): string => objectKey(metadata.namespace, metadata.name);

function inOrder(bucket: Bucket, namespace = ""): KubeObject[] {
  bucket.keys ??= [...bucket.objects.keys()].toSorted();
  const prefix = objectKey(namespace, "");
  return bucket.keys.filter((key) => key.startsWith(prefix)).flatMap((key) => bucket.objects.get(key) ?? []);
}

export type Store = ReturnType<typeof createStore>;

/** An empty store whose history holds at least `historyLength` events. */
export function createStore(clock: Clock, historyLength = 50_000) {
  const buckets = new Map<ResourceKey, Bucket>();
  const listeners = new Set<(event: StoreEvent) => void>();
  let history: StoreEvent[] = [];
  let version = 0;

  const bucketOf = (resource: ResourceKey): Bucket => {
    const bucket = buckets.get(resource) ?? { objects: new Map() };
    buckets.set(resource, bucket);
    return bucket;
  };
  const get = (resource: ResourceKey, namespace: string | undefined, name: string): KubeObject | undefined =>
    bucketOf(resource).objects.get(objectKey(namespace, name));

  const commit = (type: StoreEvent["type"], resource: ResourceKey, draft: KubeObject, previous?: KubeObject): KubeObject => {
    version += 1;
    const object = deepFreeze({ ...draft, metadata: { ...draft.metadata, resourceVersion: String(version) } });
    const bucket = bucketOf(resource);
    if (type === "DELETED") bucket.objects.delete(keyOf(object));
    else bucket.objects.set(keyOf(object), object);
    if (type !== "MODIFIED") bucket.keys = undefined;
    const event: StoreEvent = { type, resource, object, ...(previous && { previous }) };
    history.push(event);
    if (history.length > 2 * historyLength) history = history.slice(historyLength);
    for (const listener of listeners) listener(event);
    return object;
  };

  /** Events after `resourceVersion`; throws Expired (410) when the history no longer reaches back so far. */
  const since = (resourceVersion: number): readonly StoreEvent[] => {
    // Every event takes one version.
    const known = version - history.length;
    if (resourceVersion < known) throw refusal("Expired", `too old resource version: ${resourceVersion} (${known + 1})`);
    return history.slice(resourceVersion - known);
  };

  /** In order of namespace and name, as of the resourceVersion `at` (see `since`), or now. */
  const list = (resource: ResourceKey, namespace?: string, at: number | undefined = version): KubeObject[] => {
    const bucket = bucketOf(resource);
    const undone = since(at).filter((event) => event.resource === resource);
    if (undone.length === 0) return inOrder(bucket, namespace);
    const then = new Map(bucket.objects);
    for (const { object, previous } of undone.toReversed()) {
      if (previous) then.set(keyOf(previous), previous);
      else then.delete(keyOf(object));
    }
    return inOrder({ objects: then }, namespace);
  };

  /** Goes back to what there was at the resourceVersion `at`, as etcd does when it is restored from a backup; watches are told nothing. */
  const restore = (at: number): void => {
    for (const resource of buckets.keys())
      buckets.set(resource, { objects: new Map(list(resource, undefined, at).map((object) => [keyOf(object), object])) });
    history = history.slice(0, history.length - (version - at));
    version = at;
  };

  return {
    get,
    since,
    /** The newest resourceVersion given out. */
    version: () => version,
    /** All that were ever asked for. */
    resources: () => [...buckets.keys()],

    list,
    restore,

    /** Throws AlreadyExists. The object is frozen and filled: uid (unless given), resourceVersion, creationTimestamp, generation. */
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

    /** Replaces all but what the system owns. A no-op keeps the resourceVersion; throws NotFound and Conflict. `dryRun` leaves no trace. */
    update: (resource: ResourceKey, draft: Draft, options: { expectedResourceVersion?: string; dryRun?: boolean } = {}): KubeObject => {
      const { namespace, name = "" } = draft.metadata;
      const current = get(resource, namespace, name);
      if (!current) throw notFound(resource, name);
      const { resourceVersion, generation } = current.metadata;
      if ((options.expectedResourceVersion ?? resourceVersion) !== resourceVersion) throw conflict(resource, name);
      const { labels: _, annotations: __, ownerReferences: ___, finalizers: ____, ...systemOwned } = current.metadata;
      const object = { ...draft, metadata: { ...draft.metadata, ...systemOwned } };
      if (isDeepStrictEqual(object, current)) return current;
      if (generation && !isDeepStrictEqual(specOf(object), specOf(current))) object.metadata.generation = generation + 1;
      if (options.dryRun) return object;
      if (!isDone(object)) return commit("MODIFIED", resource, object, current);
      // The event shows the object as it was stored last, the answer as it was wanted.
      commit("DELETED", resource, current, current);
      return deepFreeze(object);
    },

    /** Starts or ends the deletion; answers the object as it is left. Pods get their grace period unless `gracePeriodSeconds` says otherwise. */
    remove: (resource: ResourceKey, namespace: string | undefined, name: string, options: RemoveOptions = {}): KubeObject => {
      const current = get(resource, namespace, name);
      if (!current) throw notFound(resource, name);
      checkPreconditions(current, options);
      const marked = markDeleted(current, options, clock.now());
      const isGone = isDone(marked);
      // A pod's deletion is written down even when it takes no time.
      const isWritten = marked !== current && (!isGone || resource === "pods");
      const left = isWritten ? commit("MODIFIED", resource, marked, current) : current;
      return isGone ? commit("DELETED", resource, left, left) : left;
    },

    /** Calls back synchronously after each commit; listeners defer their work. The answer unsubscribes. */
    subscribe: (listener: (event: StoreEvent) => void): (() => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
