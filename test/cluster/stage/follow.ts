/** Lists and watches all objects of a collection, as a reflector does. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Admin, WatchEvent } from "./client.ts";

export interface Followed {
  readonly metadata?: { readonly name?: string; readonly uid?: string; readonly resourceVersion?: string };
}

/**
 * Lists, then watches until `signal` is aborted. A new watch continues at the last version, or after a new
 * list if that version is too old. Resolves after the first list.
 */
export async function follow(
  admin: Admin,
  path: string,
  signal: AbortSignal,
  onChange: (type: string, object: Followed) => void,
): Promise<void> {
  const known = new Map<string, Followed>();
  let version = "";
  version = await list();
  void keepWatching();

  async function list(): Promise<string> {
    const { items, metadata } = await admin.call<{ items: Followed[]; metadata: { resourceVersion: string } }>(
      "GET",
      path,
    );
    const found = new Set(items.map((item) => item.metadata?.uid));
    for (const [uid, object] of known) if (!found.has(uid)) onEvent({ type: "DELETED", object });
    for (const object of items) onEvent({ type: "ADDED", object });
    return metadata.resourceVersion;
  }

  function onEvent({ type, object }: WatchEvent<Followed>): void {
    version = object.metadata?.resourceVersion ?? "";
    if (type === "ERROR" || type === "BOOKMARK") return;
    const uid = object.metadata?.uid ?? "";
    if (type === "DELETED") known.delete(uid);
    else known.set(uid, object);
    onChange(type, object);
  }

  async function keepWatching(): Promise<void> {
    while (!signal.aborted) {
      try {
        if (version === "") version = await list();
        await admin.watch(`${path}?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`, onEvent, signal);
      } catch {
        // The API server is down or starting: try again.
      }
      await sleep(20);
    }
  }
}
