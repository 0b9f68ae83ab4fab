/**
 * Watches for new specs of what a tick reads, and no other watch tells of: gates, budgets and RolloutGroups. Changes of
 * their statuses, which ticks and evictions write, wake no tick.
 */
import type { Clock } from "../../infra/clock.ts";
import { hasCode } from "../../infra/errors.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { disruptionBudgets, rolloutGates, rolloutGroups } from "../../infra/kubernetes/custom-resources.ts";
import type { Resource } from "../../infra/kubernetes/resources.ts";
import { type Hint, keepOpen, REOPEN_FAILED_MS } from "../../infra/kubernetes/watch.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";

interface SpecWatchOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** "" for all. */
  readonly namespaces: readonly string[];
  readonly wake: () => void;
  /** When the first tick began to read, milliseconds since the epoch. */
  readonly since: number;
}

const WATCHED: readonly Resource[] = [rolloutGates, disruptionBudgets, rolloutGroups];

/** Milliseconds until a watch that was refused is opened again. */
const REFUSED_MS = 60_000;
const pauseAfter = (error: unknown): number =>
  hasCode(error, "NotFound", "Forbidden") ? REFUSED_MS : REOPEN_FAILED_MS;

/** Watches until the signal fires. A missing definition, or a missing right to watch, is no error. */
export function startSpecWatches(options: SpecWatchOptions): void {
  for (const resource of WATCHED) for (const namespace of options.namespaces) watchSpecs(resource, namespace, options);
}

function watchSpecs(
  resource: Resource,
  namespace: string,
  { cluster, clock, signal, wake, since }: SpecWatchOptions,
): void {
  const isNews = createNews(since, resource);
  /** What was changed or deleted before it was open again is not told. */
  let wasCut = false;
  const onHint = (hint: Hint): void => {
    if (isNews(hint) || wasCut) wake();
    wasCut = false;
  };
  // Without a version, the watch first tells of all objects: what has changed while it was cut shows then.
  const query = { ...(namespace && { namespace }), resourceVersion: "" };
  void keepOpen(() => cluster.watch(resource, query, { onHint, signal }), {
    clock,
    signal,
    onCut: () => void (wasCut = true),
    pauseAfter,
  });
}

/**
 * Returns a function that is true for an object that is created after `from` (milliseconds since the epoch), has another
 * spec, or is gone. Those that exist are read by the first tick. RolloutGroups are created by the tick itself.
 */
function createNews(from: number, resource: Resource): (hint: Hint) => boolean {
  const seen = new Map<string, string>();
  const since = Math.floor(from / 1000) * 1000;
  return ({ type, namespace, name, createdAt, generation }) => {
    if (type === "BOOKMARK") return false;
    const key = `${namespace}/${name}`;
    if (type === "DELETED") return seen.delete(key);
    const spec = `${createdAt} ${generation}`;
    const before = seen.get(key);
    seen.set(key, spec);
    if (before !== undefined) return before !== spec;
    return resource !== rolloutGroups && (parseTimestamp(createdAt) ?? 0) >= since;
  };
}
