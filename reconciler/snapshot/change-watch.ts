/** Watches that hint at changes: a hint starts the next tick sooner. A watch that ends does no harm. */
import type { Clock } from "../../infra/clock.ts";
import { hasCode } from "../../infra/errors.ts";
import type { Cluster, Query } from "../../infra/kubernetes/cluster.ts";
import type { Resource } from "../../infra/kubernetes/resources.ts";
import type { Hint } from "../../infra/kubernetes/watch.ts";

export interface Watched {
  readonly resource: Resource;
  readonly query: Query;
  /** False for changes that do not concern us; by default all do. */
  readonly matters?: (hint: Hint) => boolean;
  /** Without its definition, or the right to watch it, it counts as watched, and is tried again after a minute. */
  readonly isOptional?: boolean;
}

export interface ChangeWatchOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly target: (key: string) => Watched;
  /** Milliseconds before a failed watch is restarted. */
  readonly pauseMs: number;
}

/** Milliseconds until a watch that was refused is opened again. */
const REFUSED_MS = 60_000;

/** Watches metadata until `signal` fires. A watch that fails is not an error. */
export function startChangeWatch({ cluster, clock, signal, target, pauseMs }: ChangeWatchOptions) {
  const running = new Set<string>();
  const streaming = new Set<string>();
  let wanted: readonly string[] = [];
  let changed = new AbortController();
  // With a reason, as Node.js would otherwise create an error for each change.
  const wake = (): void => changed.abort("changed");
  signal.addEventListener("abort", wake, { once: true });

  async function watch(key: string, resourceVersion: string): Promise<void> {
    running.add(key);
    const { resource, query, matters, isOptional = false } = target(key);
    const onHint = (hint: Hint): void => {
      if (hint.type !== "BOOKMARK" && matters?.(hint) !== false) wake();
    };
    streaming.add(key);
    const failure = await cluster.watch(resource, { ...query, resourceVersion }, { onHint, signal }).then(
      () => undefined,
      (error: unknown) => error,
    );
    const isRefused = isOptional && hasCode(failure, "NotFound", "Forbidden");
    if (!isRefused) streaming.delete(key);
    if (failure !== undefined) await clock.sleep(isRefused ? REFUSED_MS : pauseMs, signal);
    running.delete(key);
  }

  return {
    /** Acts like a change. */
    wake,
    /** False while a watch of the last call of `watchFrom` does not run: what changes meanwhile is not told. */
    isWatching: (): boolean => wanted.every((key) => streaming.has(key)),
    /** Starts the watches that are not running, by their keys, each from the resourceVersion of the latest list. */
    watchFrom(resourceVersions: ReadonlyMap<string, string>): void {
      wanted = [...resourceVersions.keys()];
      for (const [key, version] of resourceVersions) if (!running.has(key) && !signal.aborted) void watch(key, version);
    },
    /**
     * Resolves at the first change since the last call, after `ms` milliseconds, or when the signal fires; true if something
     * has changed.
     */
    wait: async (ms: number): Promise<boolean> => {
      await clock.sleep(ms, changed.signal);
      const isChanged = changed.signal.aborted;
      if (!signal.aborted) changed = new AbortController();
      return isChanged;
    },
  };
}
