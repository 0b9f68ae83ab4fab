/** The Kubernetes port over HTTPS: a request and its answer for each verb. */
import { type PathParts, pathOf } from "./api-path.ts";
import { type Clock, startStopwatch, systemClock } from "../clock.ts";
import type { Call, Cluster, Creation, Patch, Query, Ref, Replacement, WatchQuery, Watcher } from "./cluster.ts";
import type { Connection } from "./connection.ts";
import { absent } from "../errors.ts";
import { PROTOBUF } from "./protobuf.ts";
import { type Rate, createRateLimiter } from "./rate-limit.ts";
import { type ApiCall, type ApiObserver, requestList, requestObject } from "./request.ts";
import type { Resource } from "./resources.ts";
import type { OnDate } from "../server-clock.ts";
import { NO_TRACER, type Tracer } from "../tracing/tracer.ts";
import { type OnEvent, WATCH_SECONDS, streamHints } from "./watch.ts";

/**
 * Objects per page. They are decoded as they arrive, whatever their size. With 2,500 pods per page, they cost an API
 * server as much or half as much, but the reconciler 35 to 65 MB more while it resyncs 15,000 of the embedded cluster
 * (`npm run bench -- memory`).
 */
const PAGE_SIZE = 500;

const FULL = "application/json";
/** Servers without PartialObjectMetadata return the full object; both have the metadata. */
const METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_LIST = METADATA.replace("ObjectMetadata", "ObjectMetadataList");

export interface ClusterOptions {
  /** Milliseconds a call may take at most, and takes by default. */
  readonly timeoutMs: number;
  /** Unlimited when left out. */
  readonly rate?: Rate;
  readonly observer?: ApiObserver;
  readonly onDate?: OnDate;
  readonly clock?: Clock;
  readonly tracer?: Tracer;
  /** Cancels calls that have no signal of their own. */
  readonly signal?: AbortSignal;
}

// A server without protobuf for a kind answers in JSON.
const DECODED = `${PROTOBUF},${FULL}`;

const CONTENT_TYPES: Readonly<Record<Patch["type"], string>> = {
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  json: "application/json-patch+json",
};

interface Plan {
  readonly verb: string;
  readonly call: Call | undefined;
  readonly query?: ApiCall["query"];
}

interface WrittenObject {
  readonly metadata?: { readonly resourceVersion?: string };
}

const formOf = ({ createListDecoder, metadataOnly }: Resource): string =>
  metadataOnly ? METADATA_LIST : createListDecoder ? DECODED : FULL;

/**
 * The port over HTTPS. Opens connections as calls need them and keeps them; `connection.close()` ends the idle ones.
 */
export function connectCluster(
  connection: Connection,
  { timeoutMs, rate, observer, onDate, clock = systemClock, tracer = NO_TRACER, signal }: ClusterOptions,
): Cluster {
  const limiter = createRateLimiter(rate ?? { qps: 0, burst: 0 }, clock);
  const wiring = { connection, clock, limiter, observer, onDate, tracer };

  const settle = (what: string, call: Call = {}, query: ApiCall["query"] = {}) => ({
    what,
    query,
    accept: FULL,
    deadlineMs: Math.min(call.deadlineMs ?? timeoutMs, timeoutMs),
    signal: call.signal ?? signal,
  });
  const plan = (resource: Resource, place: PathParts, { verb, call, query }: Plan) => ({
    ...settle(nameCall(verb, resource, place), call, query),
    path: pathOf(resource, place),
  });

  const sendPatch = (
    resource: Resource,
    { type, body, fieldManager, dryRun, ...ref }: Patch,
    { call, accept }: Pick<Plan, "call"> & { readonly accept: string },
  ): Promise<unknown> => {
    const query = { fieldManager, dryRun: dryRun ? "All" : undefined };
    const patch = { method: "PATCH", body: JSON.stringify(body), contentType: CONTENT_TYPES[type], accept } as const;
    return requestObject(wiring, { ...plan(resource, ref, { verb: "patch", call, query }), ...patch });
  };

  return {
    async *list<T>(resource: Resource<T>, query: Query, call?: Call) {
      const elapsed = startStopwatch(clock);
      let token: string | undefined;
      do {
        const bounds = shorten(call, elapsed());
        const page = { ...selectors(query), limit: String(PAGE_SIZE), continue: token };
        const get = {
          ...plan(resource, query, { verb: "list", call: bounds, query: page }),
          method: "GET",
          accept: formOf(resource),
        } as const;
        for await (const { items, metadata } of requestList<T>(wiring, get, resource.createListDecoder?.())) {
          yield { items: items ?? [], resourceVersion: metadata?.resourceVersion ?? "" };
          token = metadata?.continue || undefined;
        }
      } while (token !== undefined);
    },
    async get<T>(resource: Resource<T>, ref: Ref, call?: Call) {
      return (await requestObject(wiring, { ...plan(resource, ref, { verb: "get", call }), method: "GET" })) as T;
    },
    async create<T>(resource: Resource<T>, { body, ...place }: Creation<T>, call?: Call) {
      return (await requestObject(wiring, {
        ...plan(resource, place, { verb: "create", call }),
        method: "POST",
        body: JSON.stringify(body),
      })) as T;
    },
    async replace<T>(resource: Resource<T>, { body, ...ref }: Replacement<T>, call?: Call) {
      const put = { method: "PUT", body: JSON.stringify(body) } as const;
      return (await requestObject(wiring, { ...plan(resource, ref, { verb: "replace", call }), ...put })) as T;
    },
    async patch(resource, patch, call) {
      const { metadata } = (await sendPatch(resource, patch, { call, accept: METADATA })) as WrittenObject;
      return metadata?.resourceVersion ?? "";
    },
    async change<T>(resource: Resource<T>, patch: Patch, call?: Call) {
      return (await sendPatch(resource, patch, { call, accept: FULL })) as T;
    },
    async remove(resource, { preconditions, ...ref }, call) {
      const body = JSON.stringify({ apiVersion: "v1", kind: "DeleteOptions", preconditions });
      await requestObject(wiring, { ...plan(resource, ref, { verb: "delete", call }), method: "DELETE", body });
    },
    discover(group, kind, call) {
      const what = `discover ${kind}${group && `.${group}`}`;
      return discoverKind(group, kind, (path) =>
        requestObject(wiring, { ...settle(what, call), path, method: "GET" }).catch(absent),
      );
    },
    async watch<T>(resource: Resource<T>, { resourceVersion, ...query }: WatchQuery, watcher: Watcher<T>) {
      const watch = {
        watch: "true",
        allowWatchBookmarks: "true",
        resourceVersion,
        timeoutSeconds: String(WATCH_SECONDS),
      };
      const { signal, onHint, onObject } = watcher;
      const onEvent: OnEvent = (hint, object) => {
        if (hint.type !== "BOOKMARK") onObject?.(hint.type, object as T);
        onHint(hint);
      };
      const call = plan(resource, query, { verb: "watch", call: { signal }, query: { ...selectors(query), ...watch } });
      await streamHints(wiring, { ...call, method: "GET", accept: onObject ? FULL : METADATA }, onEvent);
    },
  };
}

/** The call with the remaining time of its deadline. */
const shorten = (call: Call | undefined, elapsedMs: number): Call | undefined =>
  call?.deadlineMs === undefined ? call : { ...call, deadlineMs: Math.max(0, call.deadlineMs - elapsedMs) };

function selectors({ labelSelector, fieldSelector }: Query): ApiCall["query"] {
  return { labelSelector, fieldSelector };
}

/** `patch statefulsets/status cache/zone-a`: the start of every error of the call. */
function nameCall(verb: string, { plural }: Resource, { namespace, name, subresource }: PathParts): string {
  const kind = subresource === undefined ? plural : `${plural}/${subresource}`;
  const object = [namespace, name].filter((part) => part !== undefined).join("/");
  return `${verb} ${kind}${object && ` ${object}`}`;
}

interface ApiGroup {
  readonly versions?: readonly { readonly version: string }[];
  readonly preferredVersion?: { readonly version: string };
}

interface ApiResources {
  readonly resources?: readonly { readonly name: string; readonly kind: string }[];
}

/**
 * The resources of a kind in a group, the preferred version first; none if the server does not know the kind.
 * `read` resolves with the JSON at a path, or with undefined if the path does not exist.
 */
export async function discoverKind(
  group: string,
  kind: string,
  read: (path: string) => Promise<unknown>,
): Promise<Resource[]> {
  const root = group === "" ? "/api" : `/apis/${encodeURIComponent(group)}`;
  const versions = group === "" ? ["v1"] : versionsOf((await read(root)) as ApiGroup | undefined);
  const found = versions.map(async (version) => {
    const list = (await read(`${root}/${version}`)) as ApiResources | undefined;
    // `replicatemplates/scale` is of the kind Scale, but a name with a slash may also repeat the parent's kind.
    const names = (list?.resources ?? []).filter((resource) => resource.kind === kind && !resource.name.includes("/"));
    return names.map(({ name }): Resource => ({ group, version, plural: name }));
  });
  return (await Promise.all(found)).flat();
}

function versionsOf(group: ApiGroup | undefined): string[] {
  const preferred = group?.preferredVersion?.version;
  const all = (group?.versions ?? []).map(({ version }) => version);
  return [...all.filter((version) => version === preferred), ...all.filter((version) => version !== preferred)];
}
