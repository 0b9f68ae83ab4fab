/** Watches: the existing objects (if requested), then every change, with bookmarks. */
import type { ServerResponse } from "node:http";
import { objectText } from "./answer.ts";
import { ApiError } from "./api-error.ts";
import type { KubeObject } from "./objects.ts";
import { apiVersionOf } from "./registry.ts";
import type { Api } from "./api.ts";
import type { ApiRequest } from "./request.ts";
import { type Matches, requestSelector } from "./selectors.ts";
import type { StoreEvent } from "./store.ts";

const BOOKMARK_MS = 60_000;
const DEFAULT_TIMEOUT_S = 2400;

/**
 * The event as a watch with a selector sees it: an object that begins to match is ADDED, one that ceases to
 * is DELETED.
 */
function eventFor(
  matches: Matches,
  { type, object, previous }: StoreEvent,
): Pick<StoreEvent, "type" | "object"> | undefined {
  const was = previous !== undefined && matches(previous);
  const is = type !== "DELETED" && matches(object);
  if (is) return { type: was ? "MODIFIED" : "ADDED", object };
  if (!was) return undefined;
  const { resourceVersion } = object.metadata;
  return {
    type: "DELETED",
    object: type === "DELETED" ? object : { ...previous, metadata: { ...previous.metadata, resourceVersion } },
  };
}

/**
 * Sends events until the client disconnects, the timeout expires or a fault cuts the watch. Throws for an
 * invalid selector, before the first byte is sent.
 */
export function watch({ store, clock, faults }: Api, request: ApiRequest, response: ServerResponse): undefined {
  const { query, resource, namespace, kind } = request;
  const selection = requestSelector(resource, query) ?? (() => true);
  const wantsBookmarks = query.has("allowWatchBookmarks");
  const isStreamedList = query.has("sendInitialEvents");
  const from = Number(query.get("resourceVersion"));
  // After its timeout a watch stays subscribed until the client has read everything.
  const send = (type: string, text: string) =>
    void (response.writableEnded || response.write(`{"type":"${type}","object":${text}}\n`));
  const onEvent = (event: StoreEvent): void => {
    if (event.resource !== resource || (namespace && event.object.metadata.namespace !== namespace)) return;
    const change = eventFor(selection, event);
    if (change) send(change.type, objectText(request, change.object));
  };
  const sendBookmark = (annotations = {}): void => {
    const metadata = { resourceVersion: String(store.version()), creationTimestamp: null, annotations };
    send("BOOKMARK", JSON.stringify({ kind: kind.kind, apiVersion: apiVersionOf(kind), metadata }));
  };
  const nextBookmark = (): (() => void) =>
    clock.after(BOOKMARK_MS, () => {
      sendBookmark();
      cancelBookmark = nextBookmark();
    });

  const date = new Date(clock.now()).toUTCString();
  response.writeHead(200, { "content-type": "application/json", "cache-control": "no-cache, private", date });
  response.flushHeaders();
  try {
    const added = (object: KubeObject): StoreEvent => ({ type: "ADDED", resource, object });
    const initial = isStreamedList || from === 0 ? store.list(resource, namespace).map(added) : store.eventsSince(from);
    for (const event of initial) onEvent(event);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    send("ERROR", JSON.stringify(error.status));
    return void response.end();
  }
  if (isStreamedList && wantsBookmarks) sendBookmark({ "k8s.io/initial-events-end": "true" });
  let cancelBookmark = wantsBookmarks ? nextBookmark() : () => {};
  const seconds = Number(query.get("timeoutSeconds")) || DEFAULT_TIMEOUT_S;
  const ends = [
    store.subscribe(onEvent),
    clock.after(seconds * 1000, () => response.end()),
    faults.registerWatch(resource, () => response.destroy()),
    () => cancelBookmark(),
  ];
  response.on("close", () => {
    for (const end of ends) end();
  });
}
