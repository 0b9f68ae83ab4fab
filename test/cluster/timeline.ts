/**
 * Records what befalls every pod of a namespace, by watching; knows the StatefulSets' latest state as well.
 */
import type { Pod, StatefulSet } from "../../infra/kubernetes/resources.ts";
import type { Admin } from "./client.ts";
import { follow } from "./follow.ts";
import type { Entry, PodState } from "./invariants.ts";

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
    enter(pod, type === "DELETED");
    changed();
  });
  const followSets = follow(admin, `/apis/apps/v1/namespaces/${namespace}/statefulsets`, ended.signal, (type, set) => {
    const name = set.metadata?.name ?? "";
    if (type === "DELETED") statefulSets.delete(name);
    else statefulSets.set(name, set);
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
