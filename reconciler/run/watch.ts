/**
 * The watches of a run between its ticks: the zones, PhasedRollouts, the StatefulSets that these manage, and new specs of
 * gates, budgets and RolloutGroups. Changes of other StatefulSets wake no tick, and neither do those of other statuses,
 * which ticks and evictions write. Namespaces without PhasedRollouts have no third watch.
 */
import {
  phasedRollouts,
  disruptionBudgets,
  rolloutGates,
  rolloutGroups,
} from "../../infra/kubernetes/custom-resources.ts";
import { type Resource, statefulSets } from "../../infra/kubernetes/resources.ts";
import { type ChangeWatchOptions, startChangeWatch, type Watched } from "../snapshot/change-watch.ts";
import { LABELS } from "../model/annotations.ts";
import type { PhasedList, TickResult } from "../model/outcome.ts";
import type { Hint } from "../../infra/kubernetes/watch.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";

export type TickWatch = ReturnType<typeof startTickWatch>;

const SPECS = { gates: rolloutGates, budgets: disruptionBudgets, groups: rolloutGroups } as const;

type Kind = "zones" | "rollouts" | "targets" | keyof typeof SPECS;

interface TickWatchOptions extends Omit<ChangeWatchOptions, "target"> {
  /** "" for all. */
  readonly namespaces: readonly string[];
}

export function startTickWatch({ namespaces, ...options }: TickWatchOptions) {
  let targets: ReadonlySet<string> = new Set();
  let lists: readonly PhasedList[] = [];
  const since = options.clock.now();
  const news = new Map<string, (hint: Hint) => boolean>();

  function target(key: string): Watched {
    const [kind, namespace] = key.split("/") as [Kind, string];
    const query = namespace === "" ? {} : { namespace };
    // Their status follows every relevant change of a pod.
    if (kind === "zones") return { resource: statefulSets, query: { ...query, labelSelector: LABELS.rolloutGroup } };
    if (kind === "rollouts") return { resource: phasedRollouts, query };
    if (kind === "targets")
      return { resource: statefulSets, query, matters: ({ namespace, name }) => targets.has(`${namespace}/${name}`) };
    const matters = news.get(key) ?? createNews(since, SPECS[kind]);
    news.set(key, matters);
    return { resource: SPECS[kind], query, matters, isOptional: true };
  }

  const changes = startChangeWatch({ ...options, target });
  return {
    wait: changes.wait,
    wake: changes.wake,
    isWatching: changes.isWatching,
    /**
     * Starts the watches that are not running, each from the version of its list in the tick. Those of specs have no
     * version: they first tell of all objects.
     */
    watchAfter({ resourceVersions, phasedLists }: Pick<TickResult, "resourceVersions" | "phasedLists">): void {
      // If the step of the PhasedRollouts outlasts its tick, the tick has no lists of them: the earlier lists count.
      lists = phasedLists ?? lists;
      targets = new Set(lists.flatMap((list) => list.targets));
      const versions: readonly (readonly [key: `${Kind}/${string}`, version: string | undefined])[] = [
        ...[...resourceVersions].map(([namespace, version]) => [`zones/${namespace}`, version] as const),
        ...lists.map(({ namespace, rolloutsAt }) => [`rollouts/${namespace}`, rolloutsAt] as const),
        ...lists.map(({ namespace, targetsAt }) => [`targets/${namespace}`, targetsAt] as const),
      ];
      const specs = namespaces.flatMap((namespace) =>
        (["gates", "budgets", "groups"] as const).map((kind) => [`${kind}/${namespace}`, ""] as const),
      );
      changes.watchFrom(
        new Map([...versions.flatMap(([key, version]) => (version ? [[key, version] as const] : [])), ...specs]),
      );
    },
  };
}

/**
 * Returns a function that is true for an object that is created after `from` (milliseconds since the epoch), has another
 * spec, or is gone. Those that exist are read by the first tick. RolloutGroups are created by the tick itself.
 */
function createNews(from: number, resource: Resource): (hint: Hint) => boolean {
  const seen = new Map<string, string>();
  const since = Math.floor(from / 1000) * 1000;
  return ({ type, namespace, name, createdAt, generation }) => {
    const key = `${namespace}/${name}`;
    if (type === "DELETED") return seen.delete(key);
    const spec = `${createdAt} ${generation}`;
    const before = seen.get(key);
    seen.set(key, spec);
    if (before !== undefined) return before !== spec;
    return resource !== rolloutGroups && (parseTimestamp(createdAt) ?? 0) >= since;
  };
}
