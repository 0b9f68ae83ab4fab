/** Streams of events: what there is (when asked), then what changes, with bookmarks. */
import type { ServerResponse } from "node:http";
import { objectText } from "./answer.ts";
import { ApiError } from "./api-error.ts";
import type { KubeObject } from "./objects.ts";
import { apiVersionOf } from "./registry.ts";
import type { Api, Ask } from "./request.ts";
import { type Matches, selectionOf } from "./selectors.ts";
import type { StoreEvent } from "./store.ts";

const BOOKMARK_MS = 60_000;
const DEFAULT_TIMEOUT_S = 2400;

/** What an event means to a watch that sees only some objects: moving into sight is ADDED, out of it DELETED. */
function seenBy(matches: Matches, { type, object, previous }: StoreEvent): Pick<StoreEvent, "type" | "object"> | undefined {
  const was = previous !== undefined && matches(previous);
  const is = type !== "DELETED" && matches(object);
  if (is) return { type: was ? "MODIFIED" : "ADDED", object };
  if (!was) return undefined;
  const { resourceVersion } = object.metadata;
  return { type: "DELETED", object: type === "DELETED" ? object : { ...previous, metadata: { ...previous.metadata, resourceVersion } } };
}

/** Answers until the client leaves, the timeout ends it or a fault cuts it. Throws before the first byte for a bad selector. */
export function watch({ store, clock, faults }: Api, ask: Ask, response: ServerResponse): undefined {
  const { query, resource, namespace, kind } = ask;
  const selection = selectionOf(resource, query) ?? (() => true);
  const wantsBookmarks = query.has("allowWatchBookmarks");
  const isStreamedList = query.has("sendInitialEvents");
  const from = Number(query.get("resourceVersion"));
  // A watch whose time is over stays subscribed until its client has read it all.
  const send = (type: string, text: string) => void (response.writableEnded || response.write(`{"type":"${type}","object":${text}}\n`));
  const onEvent = (event: StoreEvent): void => {
    if (event.resource !== resource || (namespace && event.object.metadata.namespace !== namespace)) return;
    const change = seenBy(selection, event);
    if (change) send(change.type, objectText(ask, change.object));
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
    const known = isStreamedList || from === 0 ? store.list(resource, namespace).map(added) : store.since(from);
    for (const event of known) onEvent(event);
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
    faults.watching(resource, () => response.destroy()),
    () => cancelBookmark(),
  ];
  response.on("close", () => {
    for (const end of ends) end();
  });
}
