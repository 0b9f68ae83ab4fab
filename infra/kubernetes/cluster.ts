/** The Kubernetes port: all that Zonewise asks of an API server, in a few verbs. Types only; connect-cluster.ts has the port over HTTPS. */
import type { Resource } from "./resources.ts";
import type { Hint } from "./watch.ts";

/** How long a call may take and what ends it early. */
export interface Call {
  /**
   * Milliseconds until the call fails with `Timeout`; for a list, until all its pages are read. A request takes at most, and by default, the
   * cluster's own `timeoutMs`; the server is told as `?timeout=`.
   */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

export interface Query {
  /** All namespaces when left out. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Objects a page; the resource's own page size, or 500, unless said. */
  readonly pageSize?: number;
}

export interface Ref {
  /** Left out for what belongs to no namespace. */
  readonly namespace?: string;
  readonly name: string;
  readonly subresource?: "status" | "scale";
}

export interface Page<T> {
  readonly items: readonly T[];
  /** The resourceVersion at which the whole list, over all its pages, was read. */
  readonly resourceVersion: string;
}

/** A new object, and the namespace it is created in. */
export interface Creation<T> {
  readonly namespace: string;
  readonly body: T;
}

/** An object, and what takes its place; `body.metadata.resourceVersion` is the precondition. */
export interface Replacement<T> extends Ref {
  readonly body: T;
}

/**
 * An object, and what changes of it; `metadata.resourceVersion` inside a merge or strategic patch is the precondition, also against an object
 * that was deleted and made anew: versions are never used twice.
 */
export interface Patch extends Ref {
  readonly type: "merge" | "strategic" | "json";
  readonly body: unknown;
}

/** What must still hold on the server for a delete to take effect: a mismatch is `Conflict`. */
export interface Preconditions {
  readonly uid: string;
  readonly resourceVersion?: string;
}

export interface Removal extends Ref {
  readonly preconditions: Preconditions;
}

export interface WatchQuery extends Query {
  /** Changes after this version are told. */
  readonly resourceVersion: string;
}

export interface Watcher {
  readonly onHint: (hint: Hint) => void;
  readonly signal: AbortSignal;
}

/** Every verb rejects with a RolloutError and nothing else. */
export interface Cluster {
  /** A consistent (quorum) list, page by page, the caller's own work between pages included in its deadline. */
  list<T>(resource: Resource<T>, query: Query, call?: Call): AsyncGenerator<Page<T>>;
  get<T>(resource: Resource<T>, ref: Ref, call?: Call): Promise<T>;
  create<T>(resource: Resource<T>, creation: Creation<T>, call?: Call): Promise<T>;
  replace<T>(resource: Resource<T>, replacement: Replacement<T>, call?: Call): Promise<T>;
  /** Asks for metadata only; resolves with the resourceVersion that results. */
  patch(resource: Resource, patch: Patch, call?: Call): Promise<string>;
  /** Patches like `patch`, and resolves with the object that results: webhooks may have made something else of it. */
  change<T>(resource: Resource<T>, patch: Patch, call?: Call): Promise<T>;
  /** Deletes with default options (the pod's own grace period) and preconditions. Asks for metadata only; resolves with the resourceVersion that results, "" if the answer names none. */
  remove(resource: Resource, removal: Removal, call?: Call): Promise<string>;
  /** The resources that serve a kind, the preferred version first; none if the server does not know it. */
  discover(group: string, kind: string, call?: Call): Promise<readonly Resource[]>;
  /** Streams hints (metadata only) of changes until the server or `signal` ends it; rejects with `Expired` when the version is too old. */
  watch(resource: Resource, query: WatchQuery, watcher: Watcher): Promise<void>;
}
