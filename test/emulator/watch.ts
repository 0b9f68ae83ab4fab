/** Streams of events: what there is (when asked), then what changes, with bookmarks. */
import type { ServerResponse } from "node:http";
import { objectTextIn } from "./answer.ts";
import type { Api } from "./api.ts";
import { ApiError, plainError } from "./api-error.ts";
import { versionIn } from "./read.ts";
import type { KubeObject } from "./objects.ts";
import { apiVersionOf } from "./registry.ts";
import type { Ask } from "./request.ts";
import { selectionOf } from "./selectors.ts";
import type { StoreEvent } from "./store.ts";

const BOOKMARK_MS = 60_000;
const DEFAULT_TIMEOUT_S = 2400;

interface Change {
  readonly type: StoreEvent["type"];
  readonly object: KubeObject;
}

/** What an event means to a watch that sees only some objects: moving into sight is ADDED, out of it DELETED. */
function seenBy(ask: Ask, matches: (object: KubeObject) => boolean, event: StoreEvent): Change | undefined {
  const { object, previous, type } = event;
  if (event.resource !== ask.resource || (ask.namespace && object.metadata.namespace !== ask.namespace)) return undefined;
  const was = previous !== undefined && matches(previous);
  const is = type !== "DELETED" && matches(object);
  if (is) return { type: was ? "MODIFIED" : "ADDED", object };
  if (!was) return undefined;
  return { type: "DELETED", object: type === "DELETED" ? object : atVersion(previous, object.metadata.resourceVersion) };
}

function atVersion(object: KubeObject, resourceVersion: string): KubeObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}

/** Answers until the client leaves, the timeout ends it or a fault cuts it. Throws before the first byte for a bad selector. */
export function watch(api: Api, ask: Ask, response: ServerResponse): void {
  const { query, resource } = ask;
  const selection = selectionOf(resource, query) ?? (() => true);
  const matches = (object: KubeObject): boolean => (!ask.name || object.metadata.name === ask.name) && selection(object);
  const wantsBookmarks = ["1", "true"].includes(query.get("allowWatchBookmarks") ?? "");
  const from = versionIn(query, plainError) ?? 0;
  const sendsInitial = query.get("sendInitialEvents") === "true" || (query.get("sendInitialEvents") === null && from === 0);
  let hasSentColumns = false;

  const send = (type: string, text: string): void => void response.write(`{"type":"${type}","object":${text}}\n`);
  const sendChange = ({ type, object }: Change): void => {
    send(type, objectTextIn(ask, object, !hasSentColumns));
    hasSentColumns = true;
  };
  const sendBookmark = (annotations?: Record<string, string>): void => {
    const metadata = { resourceVersion: String(api.store.version()), creationTimestamp: null, ...(annotations && { annotations }) };
    send("BOOKMARK", JSON.stringify(bookmarkOf(ask, metadata)));
  };

  response.writeHead(200, { "content-type": "application/json", "cache-control": "no-cache, private" });
  response.flushHeaders();
  if (sendsInitial) {
    for (const object of api.store.list(resource, ask.namespace)) if (matches(object)) sendChange({ type: "ADDED", object });
    if (wantsBookmarks && query.get("sendInitialEvents") === "true") sendBookmark({ "k8s.io/initial-events-end": "true" });
  } else if (from !== 0) {
    try {
      for (const event of api.store.since(from)) {
        const change = seenBy(ask, matches, event);
        if (change) sendChange(change);
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      send("ERROR", JSON.stringify(error.status));
      response.end();
      return;
    }
  }

  const unsubscribe = api.store.subscribe((event) => {
    const change = seenBy(ask, matches, event);
    if (change) sendChange(change);
  });
  let cancelBookmark = (): void => {};
  const nextBookmark = (): void => {
    cancelBookmark = api.clock.after(BOOKMARK_MS, () => {
      sendBookmark();
      nextBookmark();
    });
  };
  if (wantsBookmarks) nextBookmark();
  const timeoutMs = (Number(query.get("timeoutSeconds") ?? 0) || DEFAULT_TIMEOUT_S) * 1000;
  const cancelTimeout = api.clock.after(timeoutMs, () => response.end());
  const forget = api.faults.watching(resource, () => response.destroy());
  response.on("close", () => {
    unsubscribe();
    cancelBookmark();
    cancelTimeout();
    forget();
  });
}

function bookmarkOf(ask: Ask, metadata: object): object {
  if (ask.form === "table") return { kind: "Table", apiVersion: "meta.k8s.io/v1", metadata, columnDefinitions: null, rows: [] };
  if (ask.form === "metadata") return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata };
  return { kind: ask.kind.kind, apiVersion: apiVersionOf(ask.kind), metadata };
}
