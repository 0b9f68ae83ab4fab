/** Records the changes of all pods of a namespace with a watch, and the StatefulSets' latest state. */
import type { PodObject, StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { Admin } from "./client.ts";
import { follow } from "./follow.ts";
import { SOME_TIME_MS } from "./until.ts";
import type { Entry, PodState } from "./invariants.ts";

interface SeenPod extends Omit<Entry, "at"> {
  readonly resourceVersion: string;
}

export interface Timeline {
  readonly entries: readonly Entry[];
  /** The latest state of each existing pod, by name. */
  readonly pods: ReadonlyMap<string, SeenPod>;
  readonly statefulSets: ReadonlyMap<string, StatefulSet>;
  /** Resolves once the recording has all that the API server has at the call: what follows may judge it. */
  readonly caughtUp: () => Promise<void>;
  /**
   * Resolves once the recording has this version of a pod or StatefulSet, or a later one, or its end: a watch may be
   * late.
   */
  readonly seen: (kind: "pod" | "statefulSet", written: Written) => Promise<void>;
  /**
   * Resolves once `condition` is true, which is checked after each change. Rejects after `timeoutMs` with the
   * description and the end of the timeline.
   */
  readonly until: (description: string, condition: () => boolean, timeoutMs?: number) => Promise<void>;
  readonly stop: () => void;
}

/** What the API server answers to a write. */
export interface Written {
  readonly metadata?: { readonly name?: string; readonly resourceVersion?: string };
}

const versionOf = (text: string | undefined): bigint => BigInt(text || 0);

/** Starts a recording; resolves once it has listed all objects. */
export async function recordTimeline(admin: Admin, namespace: string): Promise<Timeline> {
  const startedAt = performance.now();
  const entries: Entry[] = [];
  const latest = new Map<string, Entry>();
  const pods = new Map<string, SeenPod>();
  const statefulSets = new Map<string, StatefulSet>();
  /** The latest version of each object that was there, also of those that are gone. */
  const versionsOf = { pod: new Map<string, bigint>(), statefulSet: new Map<string, bigint>() } as const;
  const waiting = new Set<() => void>();
  const ended = new AbortController();

  function recordPod(pod: PodObject, gone: boolean): void {
    const seen = readEntry(pod, gone);
    const entry = { ...seen, at: performance.now() - startedAt };
    if (gone) pods.delete(seen.pod);
    else pods.set(seen.pod, { ...seen, resourceVersion: pod.metadata?.resourceVersion ?? "" });
    const previous = latest.get(entry.pod);
    if (previous?.uid === entry.uid && previous.state === entry.state) return;
    // If a watch missed the removal of the previous pod of this name, it is recorded now.
    if (previous && previous.uid !== entry.uid && previous.state !== "gone")
      entries.push({ ...previous, state: "gone", at: entry.at });
    latest.set(entry.pod, entry);
    entries.push(entry);
  }

  const checkConditions = (): void => {
    for (const check of waiting) check();
  };
  const podsPath = `/api/v1/namespaces/${namespace}/pods`;
  const setsPath = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  const followPods = follow(admin, podsPath, ended.signal, (type, pod) => {
    recordPod(pod, type === "DELETED");
    versionsOf.pod.set(pod.metadata?.name ?? "", versionOf(pod.metadata?.resourceVersion));
    checkConditions();
  });
  const followSets = follow(admin, setsPath, ended.signal, (type, set) => {
    const name = set.metadata?.name ?? "";
    if (type === "DELETED") statefulSets.delete(name);
    else statefulSets.set(name, set);
    versionsOf.statefulSet.set(name, versionOf(set.metadata?.resourceVersion));
    checkConditions();
  });
  await Promise.all([followPods, followSets]);

  const until: Timeline["until"] = (description, condition, timeoutMs = SOME_TIME_MS) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(check);
        reject(new Error(`not within ${timeoutMs} ms: ${description}\n${describe(entries.slice(-30))}`));
      }, timeoutMs);
      const check = (): void => {
        if (!condition()) return;
        clearTimeout(timer);
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
      check();
    });
  const seen: Timeline["seen"] = (kind, { metadata: { name = "", resourceVersion } = {} }) =>
    until(`${name} is seen as it was written`, () => (versionsOf[kind].get(name) ?? 0n) >= versionOf(resourceVersion));

  return {
    entries,
    pods,
    statefulSets,
    until,
    seen,
    async caughtUp() {
      const paths = { pod: podsPath, statefulSet: setsPath } as const;
      for (const kind of ["pod", "statefulSet"] as const) {
        const { items } = await admin.call<{ items: Written[] }>("GET", paths[kind]);
        for (const item of items) await seen(kind, item);
        const names = new Set(items.map(({ metadata }) => metadata?.name));
        const there = { pod: pods, statefulSet: statefulSets }[kind];
        const left = [...there.keys()].filter((name) => !names.has(name));
        // One of the name may come back meanwhile; it is another one then.
        const versions = new Map(left.map((name) => [name, versionsOf[kind].get(name)]));
        const areGone = (): boolean =>
          left.every((name) => !there.has(name) || versionsOf[kind].get(name) !== versions.get(name));
        await until(`${left.join(", ")} are gone`, areGone);
      }
    },
    stop: () => ended.abort(),
  };
}

/** Formats a timeline, one line per entry. */
export function describe(entries: readonly Entry[]): string {
  return entries
    .map(({ at, pod, uid, revision, state }) => `${Math.round(at)} ms ${pod} ${uid.slice(0, 8)} ${revision} ${state}`)
    .join("\n");
}

function readEntry(pod: PodObject, gone: boolean): Omit<Entry, "at"> {
  const { labels = {}, name = "", uid = "", ownerReferences = [] } = pod.metadata ?? {};
  return {
    group: labels["group"] ?? labels["rollout-group"] ?? "",
    zone: ownerReferences[0]?.name ?? "",
    pod: name,
    uid,
    revision: labels["controller-revision-hash"] ?? "",
    state: gone ? "gone" : stateOf(pod),
  };
}

function stateOf({ metadata, status }: PodObject): PodState {
  if (metadata?.deletionTimestamp) return "terminating";
  return status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ? "ready" : "notReady";
}
