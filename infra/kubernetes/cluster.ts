/**
 * The Kubernetes port: the few verbs that Zonewise needs of an API server. Types only; connect-cluster.ts implements it
 * over HTTPS.
 */
import type { Resource } from "./resources.ts";
import type { Hint } from "./watch.ts";

export interface Call {
  /**
   * Milliseconds until the call fails with `Timeout`; for a list, until all its pages are read. The maximum and the
   * default are the cluster's `timeoutMs`. The server receives the time as `?timeout=`.
   */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

export interface Query {
  /** All namespaces if absent. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface Ref {
  readonly namespace?: string;
  readonly name: string;
  readonly subresource?: "status" | "scale";
}

export interface Page<T> {
  readonly items: readonly T[];
  /** The resourceVersion of the whole list; "" until the server has sent it, which it has with the last of the items. */
  readonly resourceVersion: string;
}

/**
 * A new object, and the namespace it is created in; or a subresource that is created, such as an eviction, with the
 * name of its object.
 */
export interface Creation<T> {
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: "eviction";
  readonly body: T;
}

/** An object and its replacement; `body.metadata.resourceVersion` is the precondition. */
export interface Replacement<T> extends Ref {
  readonly body: T;
}

/**
 * An object and its changes. `metadata.resourceVersion` inside a merge or strategic patch is the precondition. It also
 * detects a recreated object, as versions are never reused.
 */
export interface Patch extends Ref {
  readonly type: "merge" | "strategic" | "json";
  readonly body: unknown;
  /** Named in `metadata.managedFields`; the API server derives it from the process by default. */
  readonly fieldManager?: string;
  /** The server checks and answers, and stores nothing. */
  readonly dryRun?: boolean;
}

/** The preconditions of a delete: a mismatch is a `Conflict`. */
interface Preconditions {
  readonly uid: string;
  readonly resourceVersion?: string;
}

interface Removal extends Ref {
  readonly preconditions: Preconditions;
}

export interface WatchQuery extends Query {
  /** The watch reports changes after this version. */
  readonly resourceVersion: string;
}

export interface Watcher<T = unknown> {
  readonly onHint: (hint: Hint) => void;
  /** Also receives each object as it has become, or as it was when it was deleted; without it, metadata is requested. */
  readonly onObject?: (type: Hint["type"], object: T) => void;
  readonly signal: AbortSignal;
}

/** Every verb rejects only with a RolloutError. */
export interface Cluster {
  /** A consistent (quorum) list, part by part as it arrives. The deadline includes the caller's work between pages. */
  list<T>(resource: Resource<T>, query: Query, call?: Call): AsyncGenerator<Page<T>>;
  get<T>(resource: Resource<T>, ref: Ref, call?: Call): Promise<T>;
  create<T>(resource: Resource<T>, creation: Creation<T>, call?: Call): Promise<T>;
  replace<T>(resource: Resource<T>, replacement: Replacement<T>, call?: Call): Promise<T>;
  /** Requests metadata only; resolves with the resulting resourceVersion. */
  patch(resource: Resource, patch: Patch, call?: Call): Promise<string>;
  /** Like `patch`, but resolves with the resulting object: webhooks may have changed it. */
  change<T>(resource: Resource<T>, patch: Patch, call?: Call): Promise<T>;
  /** Deletes with default options (the pod's own grace period) and preconditions. */
  remove(resource: Resource, removal: Removal, call?: Call): Promise<void>;
  /** The resources that serve a kind, the preferred version first; empty if the server does not know the kind. */
  discover(group: string, kind: string, call?: Call): Promise<readonly Resource[]>;
  /**
   * Streams hints of changes, in the order of the changes, until the server or `signal` ends it; rejects with `Expired`
   * when the version is too old.
   */
  watch<T>(resource: Resource<T>, query: WatchQuery, watcher: Watcher<T>): Promise<void>;
}
