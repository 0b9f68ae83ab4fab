/**
 * The watches of a run between its ticks: the zones, PhasedRollouts, and the StatefulSets that these manage. Changes
 * of other StatefulSets wake no tick, and neither do our own writes to a PhasedRollout. Namespaces without
 * PhasedRollouts have no third watch.
 */
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import {
  phasedRollouts,
  disruptionBudgets,
  rolloutGates,
  rolloutGroups,
} from "../../infra/kubernetes/custom-resources.ts";
import { type ObjectMeta, type Resource, statefulSets } from "../../infra/kubernetes/resources.ts";
import { type ChangeWatchOptions, startChangeWatch, type Watched } from "../snapshot/change-watch.ts";
import { LABELS } from "../model/annotations.ts";
import type { PhasedList, TickResult } from "../model/outcome.ts";
import type { Clock } from "../../infra/clock.ts";
import { hasCode } from "../../infra/errors.ts";
import { type Hint, keepOpen, REOPEN_FAILED_MS } from "../../infra/kubernetes/watch.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";

export type TickWatch = ReturnType<typeof startTickWatch>;

type Kind = "zones" | "rollouts" | "targets";

export function startTickWatch(options: Omit<ChangeWatchOptions, "target">) {
  /** The versions that we have written since the tick before the last: their hints may come late. */
  let [written, writtenBefore] = [new Set<string>(), new Set<string>()];
  let targets: ReadonlySet<string> = new Set();
  let lists: readonly PhasedList[] = [];

  const watched: Record<Kind, Omit<Watched, "query"> & { readonly labelSelector?: string }> = {
    // Their status follows every relevant change of a pod.
    zones: { resource: statefulSets, labelSelector: LABELS.rolloutGroup },
    rollouts: {
      resource: phasedRollouts,
      matters: ({ resourceVersion }) => !written.has(resourceVersion) && !writtenBefore.has(resourceVersion),
    },
    targets: { resource: statefulSets, matters: ({ namespace, name }) => targets.has(`${namespace}/${name}`) },
  };

  function target(key: string): Watched {
    const [kind = "", namespace] = key.split("/");
    const { labelSelector, ...rest } = watched[kind as Kind];
    return { ...rest, query: { ...(namespace && { namespace }), ...(labelSelector && { labelSelector }) } };
  }

  const changes = startChangeWatch({ ...options, target });
  return {
    wait: changes.wait,
    wake: changes.wake,
    isWatching: changes.isWatching,
    /** Starts the watches that are not running, each from the version of its list in the tick. */
    watchAfter({ resourceVersions, phasedLists }: Pick<TickResult, "resourceVersions" | "phasedLists">): void {
      [written, writtenBefore] = [new Set(), written];
      // If the step of the PhasedRollouts outlasts its tick, the tick has no lists of them: the earlier lists count.
      lists = phasedLists ?? lists;
      targets = new Set(lists.flatMap((list) => list.targets));
      const versions: readonly (readonly [key: `${Kind}/${string}`, version: string | undefined])[] = [
        ...[...resourceVersions].map(([namespace, version]) => [`zones/${namespace}`, version] as const),
        ...lists.map(({ namespace, rolloutsAt }) => [`rollouts/${namespace}`, rolloutsAt] as const),
        ...lists.map(({ namespace, targetsAt }) => [`targets/${namespace}`, targetsAt] as const),
      ];
      changes.watchFrom(new Map(versions.flatMap(([key, version]) => (version ? [[key, version]] : []))));
    },
    /** For the writes of the ticks, so that they are known as our own. */
    cluster: noteVersions(options.cluster, phasedRollouts, (version) => written.add(version)),
  };
}

/** The same cluster; `note` gets the version of each change of an object of this kind. */
function noteVersions(cluster: Cluster, kind: Resource, note: (version: string) => void): Cluster {
  const noteStored = <T>(resource: Resource<T>, stored: T): T => {
    if (resource === kind) note((stored as { readonly metadata?: ObjectMeta }).metadata?.resourceVersion ?? "");
    return stored;
  };
  return {
    ...cluster,
    async patch(resource, ...rest) {
      const version = await cluster.patch(resource, ...rest);
      if (resource === kind) note(version);
      return version;
    },
    change: async (resource, ...rest) => noteStored(resource, await cluster.change(resource, ...rest)),
    replace: async (resource, ...rest) => noteStored(resource, await cluster.replace(resource, ...rest)),
  };
}

// Watches for new specs of what a tick reads, and no other watch tells of: gates, budgets and RolloutGroups. Changes of
// their statuses, which ticks and evictions write, wake no tick.

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
