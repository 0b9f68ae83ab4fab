/** Watches that say "something moved": they make the next tick come sooner and may die without harm. */
import type { Clock } from "../infra/clock.ts";
import type { Cluster } from "../infra/cluster.ts";
import { statefulSets } from "../infra/resources.ts";
import { LABELS } from "./model/annotations.ts";

export interface Hints {
  /** Starts the watches that are not running, each from where the latest list left off. */
  readonly watchFrom: (resourceVersions: ReadonlyMap<string, string>) => void;
  /** Resolves at the first hint since the last call, after `ms`, or at the end. */
  readonly wait: (ms: number) => Promise<void>;
}

/** Watches StatefulSets' metadata; their status follows every change of a pod that matters. Ends with `signal`. */
export function startHints(cluster: Cluster, clock: Clock, signal: AbortSignal): Hints {
  const running = new Set<string>();
  let hinted = new AbortController();
  signal.addEventListener("abort", () => hinted.abort(), { once: true });

  async function watch(namespace: string, resourceVersion: string): Promise<void> {
    running.add(namespace);
    const query = { ...(namespace && { namespace }), labelSelector: LABELS.rolloutGroup };
    const onHint = (hint: { readonly type: string }): void => {
      if (hint.type !== "BOOKMARK") hinted.abort();
    };
    await cluster.watch(statefulSets, query, resourceVersion, onHint, signal).catch(() => clock.sleep(1000, signal));
    running.delete(namespace);
  }

  return {
    watchFrom(resourceVersions) {
      for (const [namespace, version] of resourceVersions) if (!running.has(namespace) && !signal.aborted) void watch(namespace, version);
    },
    async wait(ms) {
      await clock.sleep(ms, hinted.signal);
      if (!signal.aborted) hinted = new AbortController();
    },
  };
}
