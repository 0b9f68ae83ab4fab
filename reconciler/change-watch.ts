/** Watches that say "something changed": they make the next look come sooner, and may die without harm. */
import type { Clock } from "../infra/clock.ts";
import type { Cluster, Query } from "../infra/kubernetes/cluster.ts";
import { type Resource, statefulSets } from "../infra/kubernetes/resources.ts";
import { LABELS } from "./model/annotations.ts";

export interface ChangeWatch {
  /** Starts the watches that are not running, by their keys, each from where the latest list left off. */
  readonly watchFrom: (resourceVersions: ReadonlyMap<string, string>) => void;
  /** Resolves at the first change since the last call, after `ms`, or at the end. */
  readonly wait: (ms: number) => Promise<void>;
  /** Counts as a change. */
  readonly wake: () => void;
}

export interface Watched {
  readonly resource: Resource;
  readonly query: Query;
}

export interface ChangeWatchOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** Ends the watches. */
  readonly signal: AbortSignal;
  /** What is watched under a key. */
  readonly target: (key: string) => Watched;
  /** Milliseconds after which a watch that failed may be started again. */
  readonly pauseMs: number;
  /** Called once a watch may be started again; with the error, if it failed. */
  readonly onEnd?: (error: unknown) => void;
}

/** The zones of a namespace ("" for all): their status follows every change of a pod that matters. */
export function zonesOf(namespace: string): Watched {
  return { resource: statefulSets, query: { ...(namespace && { namespace }), labelSelector: LABELS.rolloutGroup } };
}

/** Watches metadata until `signal` fires; what comes of a watch is never an error. */
export function startChangeWatch({ cluster, clock, signal, target, pauseMs, onEnd }: ChangeWatchOptions): ChangeWatch {
  const running = new Set<string>();
  let changed = new AbortController();
  const wake = (): void => changed.abort();
  signal.addEventListener("abort", wake, { once: true });

  async function watch(key: string, resourceVersion: string): Promise<void> {
    running.add(key);
    const { resource, query } = target(key);
    const onHint = (hint: { readonly type: string }): void => {
      if (hint.type !== "BOOKMARK") wake();
    };
    let failure: unknown;
    await cluster.watch(resource, query, resourceVersion, onHint, signal).catch((error: unknown) => {
      failure = error;
      return clock.sleep(pauseMs, signal);
    });
    running.delete(key);
    if (!signal.aborted) onEnd?.(failure);
  }

  return {
    wake,
    watchFrom(resourceVersions) {
      for (const [key, version] of resourceVersions) if (!running.has(key) && !signal.aborted) void watch(key, version);
    },
    async wait(ms) {
      await clock.sleep(ms, changed.signal);
      if (!signal.aborted) changed = new AbortController();
    },
  };
}
