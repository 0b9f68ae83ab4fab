/** The Kubernetes port: all that Zonewise asks of an API server, in a few verbs. */
import { pathOf, type Place } from "./api-path.ts";
import { type Clock, startStopwatch, systemClock } from "../clock.ts";
import type { Connection } from "./connection.ts";
import { discoverKind } from "./discovery.ts";
import { absent } from "../errors.ts";
import { PROTOBUF } from "./protobuf.ts";
import { createRateLimiter, type Rate } from "./rate-limit.ts";
import { type ApiCall, type Observer, requestObject } from "./request.ts";
import type { ListBody, Resource } from "./resources.ts";
import type { OnDate } from "../server-clock.ts";
import { type Hint, streamHints, WATCH_SECONDS } from "./watch.ts";

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

/** What must still hold on the server for a delete to take effect: a mismatch is `Conflict`. */
export interface Preconditions {
  readonly uid: string;
  readonly resourceVersion?: string;
}

export type PatchType = "merge" | "strategic" | "json";

/** Every verb rejects with a RolloutError and nothing else. */
export interface Cluster {
  /** A consistent (quorum) list, page by page, the caller's own work between pages included in its deadline. */
  list<T>(resource: Resource<T>, query: Query, call?: Call): AsyncGenerator<Page<T>>;
  get<T>(resource: Resource<T>, ref: Ref, call?: Call): Promise<T>;
  create<T>(resource: Resource<T>, namespace: string, body: T, call?: Call): Promise<T>;
  /** Replaces the object; `body.metadata.resourceVersion` is the precondition. */
  replace<T>(resource: Resource<T>, ref: Ref, body: T, call?: Call): Promise<T>;
  /** Patches the object; `metadata.resourceVersion` inside a merge or strategic patch is the precondition, also against an object that was deleted and made anew: versions are never used twice. Asks for metadata only; resolves with the resourceVersion that results. */
  patch(resource: Resource, ref: Ref, type: PatchType, body: unknown, call?: Call): Promise<string>;
  /** Patches like `patch`, and resolves with the object that results: webhooks may have made something else of it. */
  change<T>(resource: Resource<T>, ref: Ref, type: PatchType, body: unknown, call?: Call): Promise<T>;
  /** Deletes with default options (the pod's own grace period) and preconditions. Asks for metadata only; resolves with the resourceVersion that results, "" if the answer names none. */
  remove(resource: Resource, ref: Ref, preconditions: Preconditions, call?: Call): Promise<string>;
  /** The resources that serve a kind, the preferred version first; none if the server does not know it. */
  discover(group: string, kind: string, call?: Call): Promise<readonly Resource[]>;
  /** Streams hints (metadata only) of changes after `resourceVersion` until the server or `signal` ends it; rejects with `Expired` when the version is too old. */
  watch(resource: Resource, query: Query, resourceVersion: string, onHint: (hint: Hint) => void, signal: AbortSignal): Promise<void>;
}

export interface ClusterOptions {
  /** Milliseconds a call may take at most, and takes by default. */
  readonly timeoutMs: number;
  /** Unlimited when left out. */
  readonly rate?: Rate;
  readonly observer?: Observer;
  readonly onDate?: OnDate;
  readonly clock?: Clock;
}

const PAGE_SIZE = 500;
const FULL = "application/json";
// A server that has no protobuf of a kind answers in JSON.
const DECODED = `${PROTOBUF},${FULL}`;
// Whoever cannot make a PartialObjectMetadata sends the object; either has the metadata.
const METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

const CONTENT_TYPES: Readonly<Record<PatchType, string>> = {
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  json: "application/json-patch+json",
};

interface Body {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
}

/** The port over HTTPS. Opens connections as calls need them and keeps them; `connection.close()` ends the idle ones. */
export function connectCluster(
  connection: Connection,
  { timeoutMs, rate, observer, onDate, clock = systemClock }: ClusterOptions,
): Cluster {
  const limiter = createRateLimiter(rate ?? { qps: 0, burst: 0 }, clock);
  const wiring = { connection, clock, limiter, observer, onDate };

  const settle = (what: string, call: Call = {}, query: ApiCall["query"] = {}) => ({
    what,
    query,
    accept: FULL,
    deadlineMs: Math.min(call.deadlineMs ?? timeoutMs, timeoutMs),
    signal: call.signal,
  });
  const plan = (verb: string, resource: Resource, place: Place, call?: Call, query?: ApiCall["query"]) => ({
    ...settle(nameCall(verb, resource, place), call, query),
    path: pathOf(resource, place),
  });

  return {
    async *list<T>(resource: Resource<T>, query: Query, call?: Call) {
      const elapsed = startStopwatch(clock);
      let token: string | undefined;
      do {
        const bounds = call?.deadlineMs === undefined ? call : { ...call, deadlineMs: Math.max(0, call.deadlineMs - elapsed()) };
        const page = { ...selectors(query), limit: String(query.pageSize ?? resource.pageSize ?? PAGE_SIZE), continue: token };
        const { decodeList: decode } = resource;
        const form = decode && { accept: DECODED, decode };
        const body = (await requestObject(wiring, {
          ...plan("list", resource, query, bounds, page),
          method: "GET",
          ...form,
        })) as ListBody<T>;
        yield { items: body.items ?? [], resourceVersion: versionOf(body) };
        token = body.metadata?.continue || undefined;
      } while (token !== undefined);
    },
    async get<T>(resource: Resource<T>, ref: Ref, call?: Call) {
      return (await requestObject(wiring, { ...plan("get", resource, ref, call), method: "GET" })) as T;
    },
    async create<T>(resource: Resource<T>, namespace: string, body: T, call?: Call) {
      return (await requestObject(wiring, {
        ...plan("create", resource, { namespace }, call),
        method: "POST",
        body: JSON.stringify(body),
      })) as T;
    },
    async replace<T>(resource: Resource<T>, ref: Ref, body: T, call?: Call) {
      return (await requestObject(wiring, { ...plan("replace", resource, ref, call), method: "PUT", body: JSON.stringify(body) })) as T;
    },
    async patch(resource, ref, type, body, call) {
      const contentType = CONTENT_TYPES[type];
      const patch = { method: "PATCH", body: JSON.stringify(body), contentType, accept: METADATA } as const;
      return versionOf(await requestObject(wiring, { ...plan("patch", resource, ref, call), ...patch }));
    },
    async change<T>(resource: Resource<T>, ref: Ref, type: PatchType, body: unknown, call?: Call) {
      const patch = { method: "PATCH", body: JSON.stringify(body), contentType: CONTENT_TYPES[type] } as const;
      return (await requestObject(wiring, { ...plan("patch", resource, ref, call), ...patch })) as T;
    },
    async remove(resource, ref, preconditions, call) {
      const body = JSON.stringify({ apiVersion: "v1", kind: "DeleteOptions", preconditions });
      return versionOf(await requestObject(wiring, { ...plan("delete", resource, ref, call), method: "DELETE", accept: METADATA, body }));
    },
    discover(group, kind, call) {
      const what = `discover ${kind}${group && `.${group}`}`;
      return discoverKind(group, kind, (path) => requestObject(wiring, { ...settle(what, call), path, method: "GET" }).catch(absent));
    },
    async watch(resource, query, resourceVersion, onHint, signal) {
      const watch = { watch: "true", allowWatchBookmarks: "true", resourceVersion, timeoutSeconds: String(WATCH_SECONDS) };
      const call = plan("watch", resource, query, { signal }, { ...selectors(query), ...watch });
      await streamHints(wiring, { ...call, method: "GET", accept: METADATA }, onHint);
    },
  };
}

function versionOf(body: unknown): string {
  return (body as Body).metadata?.resourceVersion ?? "";
}

function selectors({ labelSelector, fieldSelector }: Query): ApiCall["query"] {
  return { labelSelector, fieldSelector };
}

/** `patch statefulsets/status cache/zone-a`: the start of every error of the call. */
function nameCall(verb: string, { plural }: Resource, { namespace, name, subresource }: Place): string {
  const kind = subresource === undefined ? plural : `${plural}/${subresource}`;
  const object = [namespace, name].filter((part) => part !== undefined).join("/");
  return `${verb} ${kind}${object && ` ${object}`}`;
}
