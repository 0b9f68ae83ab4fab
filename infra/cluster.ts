/** The Kubernetes port: all that Zonewise asks of an API server, in a few verbs. */
import type { Resource } from "./resources.ts";

/** How long a call may take and what ends it early. */
export interface Call {
  /** Milliseconds until the call fails with `Timeout`; at most, and by default, the cluster's own `timeoutMs`. Also sent to the server as `?timeout=`. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

export interface Query {
  /** All namespaces when left out. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Objects a page; 500 unless said. */
  readonly pageSize?: number;
}

export interface Ref {
  readonly namespace: string;
  readonly name: string;
  readonly subresource?: "status" | "scale";
}

export interface Page<T> {
  readonly items: readonly T[];
  /** The resourceVersion at which the whole list, over all its pages, was read. */
  readonly resourceVersion: string;
}

/** What must still hold on the server for a delete to take effect: a mismatch is `Conflict`. */
export interface Preconditions {
  readonly uid: string;
  readonly resourceVersion?: string;
}

export type PatchType = "merge" | "strategic" | "json";

/** Metadata of an object, as a watch hint carries it. */
export interface Hint {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
}

/** Every verb rejects with a RolloutError and nothing else. */
export interface Cluster {
  /** A consistent (quorum) list, page by page. */
  list<T>(resource: Resource<T>, query: Query, call?: Call): AsyncGenerator<Page<T>>;
  get<T>(resource: Resource<T>, ref: Ref, call?: Call): Promise<T>;
  create<T>(resource: Resource<T>, namespace: string, body: T, call?: Call): Promise<T>;
  /** Replaces the object; `body.metadata.resourceVersion` is the precondition. */
  replace<T>(resource: Resource<T>, ref: Ref, body: T, call?: Call): Promise<T>;
  /** Patches the object; `metadata.resourceVersion` and `metadata.uid` inside a merge patch are preconditions. Asks for metadata only; resolves with the resourceVersion that results. */
  patch(resource: Resource, ref: Ref, type: PatchType, body: unknown, call?: Call): Promise<string>;
  /** Deletes with default options (the pod's own grace period) and preconditions. Asks for metadata only; resolves with the resourceVersion that results, "" if the answer names none. */
  remove(resource: Resource, ref: Ref, preconditions: Preconditions, call?: Call): Promise<string>;
  /** Streams hints (metadata only) of changes after `resourceVersion` until the server or `signal` ends it; rejects with `Expired` when the version is too old. */
  watch(resource: Resource, query: Query, resourceVersion: string, onHint: (hint: Hint) => void, signal: AbortSignal): Promise<void>;
}
