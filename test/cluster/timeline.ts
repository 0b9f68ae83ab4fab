/**
 * Records what befalls every pod of a namespace, by watching; knows the StatefulSets' latest state as well.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Pod, StatefulSet } from "../../infra/kubernetes/resources.ts";
import type { Admin, WatchEvent } from "./client.ts";
import type { Entry, PodState } from "./invariants.ts";

type Followed = Pod | StatefulSet;

export interface SeenPod extends Omit<Entry, "at"> {
  readonly resourceVersion: string;
}

export interface Timeline {
  readonly entries: readonly Entry[];
  /** The pods that are there, by name, each as it was last seen. */
  readonly pods: ReadonlyMap<string, SeenPod>;
  readonly statefulSets: ReadonlyMap<string, StatefulSet>;
  /**
   * Resolves once `holds`, which is asked anew after each change; rejects after `patienceMs` with `what` and
   * the end of the timeline.
   */
  readonly until: (what: string, holds: () => boolean, patienceMs?: number) => Promise<void>;
  readonly stop: () => void;
}

const PATIENCE_MS = 60_000;

/** Resolves once the recording runs. */
export async function recordTimeline(admin: Admin, namespace: string): Promise<Timeline> {
  const startedAt = performance.now();
  const entries: Entry[] = [];
  const latest = new Map<string, Entry>();
  const pods = new Map<string, SeenPod>();
  const statefulSets = new Map<string, StatefulSet>();
  const waiting = new Set<() => void>();
  const ended = new AbortController();

  function enter(pod: Pod, gone: boolean): void {
    const seen = readEntry(pod, gone);
    const entry = { ...seen, at: performance.now() - startedAt };
    if (gone) pods.delete(seen.pod);
    else pods.set(seen.pod, { ...seen, resourceVersion: pod.metadata?.resourceVersion ?? "" });
    const before = latest.get(entry.pod);
    if (before?.uid === entry.uid && before.state === entry.state) return;
    // A new pod of the name: if the end of the old one went unseen (the watch was cut), it is told now.
    if (before && before.uid !== entry.uid && before.state !== "gone") entries.push({ ...before, state: "gone", at: entry.at });
    latest.set(entry.pod, entry);
    entries.push(entry);
  }

  const changed = (): void => {
    for (const check of waiting) check();
  };
  const followPods = follow(admin, `/api/v1/namespaces/${namespace}/pods`, ended.signal, (type, pod) => {
    enter(pod as Pod, type === "DELETED");
    changed();
  });
  const followSets = follow(admin, `/apis/apps/v1/namespaces/${namespace}/statefulsets`, ended.signal, (type, set) => {
    const name = set.metadata?.name ?? "";
    if (type === "DELETED") statefulSets.delete(name);
    else statefulSets.set(name, set as StatefulSet);
    changed();
  });
  await Promise.all([followPods, followSets]);

  return {
    entries,
    pods,
    statefulSets,
    until: (what, holds, patienceMs = PATIENCE_MS) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(check);
          reject(new Error(`not within ${patienceMs} ms: ${what}\n${describe(entries.slice(-30))}`));
        }, patienceMs);
        const check = (): void => {
          if (!holds()) return;
          clearTimeout(timer);
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
    stop: () => ended.abort(),
  };
}

/** A timeline for humans. */
export function describe(entries: readonly Entry[]): string {
  return entries
    .map(({ at, pod, uid, revision, state }) => `${Math.round(at)} ms ${pod} ${uid.slice(0, 8)} ${revision} ${state}`)
    .join("\n");
}

/**
 * Lists, then watches for ever: from where the watch ended, or from a new list once that is too old. Resolves
 * after the first list.
 */
async function follow(admin: Admin, path: string, signal: AbortSignal, onChange: (type: string, object: Followed) => void): Promise<void> {
  const known = new Map<string, Followed>();
  let version = await list();
  void goOn();

  async function list(): Promise<string> {
    const { items, metadata } = await admin.call<{ items: Followed[]; metadata: { resourceVersion: string } }>("GET", path);
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

  async function goOn(): Promise<void> {
    while (!signal.aborted) {
      try {
        if (version === "") version = await list();
        await admin.watch(`${path}?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`, onEvent, signal);
      } catch {
        // The API server is down or coming up; the next attempt tells.
      }
      await sleep(20);
    }
  }
}

function readEntry(pod: Pod, gone: boolean): Omit<Entry, "at"> {
  const { labels = {}, name = "", uid = "", ownerReferences = [] } = pod.metadata ?? {};
  return {
    group: labels["group"] ?? "",
    zone: ownerReferences[0]?.name ?? "",
    pod: name,
    uid,
    revision: labels["controller-revision-hash"] ?? "",
    state: gone ? "gone" : stateOf(pod),
  };
}

function stateOf({ metadata, status }: Pod): PodState {
  if (metadata?.deletionTimestamp) return "terminating";
  return status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ? "ready" : "notReady";
}
