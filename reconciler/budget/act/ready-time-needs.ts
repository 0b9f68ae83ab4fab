/**
 * Remembers which groups, and which pods outside of groups, must be read for their ready times (§5.7). A hint only; a
 * new process starts without it.
 */
import { matchesLabels } from "../selector.ts";
import { delayOf } from "../zpdb.ts";
import { groupKey, selectorText, type GroupSnapshot, type Zone } from "../../model/zone.ts";
import type { ListedBudget } from "./gather-budget.ts";
import { type DelayedBudget, writeReadyTimes, type ReadyTimeWriter, type WriteBounds } from "./ready-times.ts";

export interface ReadyTimeNeeds {
  /** Notes which budgets have a delay; `budgets` are all that the tick may read. */
  readonly noteDelays: (budgets: readonly ListedBudget[]) => void;
  /** Notes the result of the last read of a group, by its key. */
  readonly noteGroup: (key: string, facts: GroupFacts) => void;
  /** True if the pods of the group must be read, even if its status is settled. */
  readonly needsPods: (zones: readonly Zone[]) => boolean;
  /**
   * A budget with a delay for each selector whose pods outside of groups have not been read since; the longest waiting
   * first.
   */
  readonly outsideGroups: ReadonlyMap<string, DelayedBudget>;
  /** Removes one of these, as its pods are read now. */
  readonly beginOutside: (key: string) => void;
}

interface GroupFacts {
  /** True if a budget selects pods of the group. */
  readonly isCovered: boolean;
  /** True if one of those pods was not ready, or its ready time could not be written. */
  readonly isPending: boolean;
}

export function createReadyTimeNeeds(): ReadyTimeNeeds {
  const groups = new Map<string, GroupFacts>();
  const outsideGroups = new Map<string, DelayedBudget>();
  /** As last read. */
  let delayed: readonly DelayedBudget[] = [];

  return {
    noteDelays(budgets) {
      delayed = budgets.flatMap(({ ref: { namespace, name }, matchLabels, object }) =>
        matchLabels && delayOf(object) > 0 ? [{ namespace, name, matchLabels }] : [],
      );
      const selectors = new Map(delayed.map((budget) => [`${budget.namespace} ${selectorText(budget)}`, budget]));
      for (const key of outsideGroups.keys()) if (!selectors.has(key)) outsideGroups.delete(key);
      for (const [key, budget] of selectors) outsideGroups.set(key, budget);
    },
    noteGroup: (key, facts) => void groups.set(key, facts),
    needsPods(zones) {
      const [first] = zones;
      const facts = first && groups.get(groupKey(first));
      if (!facts) return delayed.some((budget) => budget.namespace === first?.namespace);
      return facts.isPending || (facts.isCovered && zones.some(({ status }) => status.ready < status.replicas));
    },
    outsideGroups,
    beginOutside: (key) => void outsideGroups.delete(key),
  };
}

export interface GroupToMaintain {
  readonly group: GroupSnapshot;
  /** The budgets of the group's namespace. */
  readonly budgets: readonly ListedBudget[];
  readonly needs: ReadyTimeNeeds;
}

/**
 * Brings the ready times of the group's pods under budgets up to date, and remembers whether they must be read again.
 * Throws `LeaseLost`.
 */
export async function maintainReadyTimes(
  { group, budgets, needs }: GroupToMaintain,
  writer: ReadyTimeWriter,
  bounds: WriteBounds,
): Promise<void> {
  const covered = group.zones.filter((zone) =>
    budgets.some(({ matchLabels }) => matchLabels && matchesLabels(matchLabels, zone.podLabels)),
  );
  const pods = covered.flatMap((zone) => zone.pods);
  const key = groupKey({ namespace: group.namespace, group: group.name });
  const facts = { isCovered: covered.length > 0, isPending: pods.some((pod) => !pod.ready) };
  needs.noteGroup(key, facts);
  const isComplete = await writeReadyTimes(pods, writer, bounds);
  if (!isComplete) needs.noteGroup(key, { ...facts, isPending: true });
}
