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
  /** The result of the last read of each group, by its key. */
  readonly groups: Map<string, GroupFacts>;
  /** The budgets with a delay, as last read. */
  delayed: readonly DelayedBudget[];
  /**
   * One of these budgets for each selector whose pods outside of groups have not been read since; the longest waiting
   * first.
   */
  readonly outsideGroups: Map<string, DelayedBudget>;
}

interface GroupFacts {
  /** True if a budget selects pods of the group. */
  readonly isCovered: boolean;
  /** True if one of those pods was not ready, or its ready time could not be written. */
  readonly isPending: boolean;
}

export const noReadyTimes = (): ReadyTimeNeeds => ({ groups: new Map(), delayed: [], outsideGroups: new Map() });

/** Remembers which budgets have a delay; `budgets` are all that the tick may read. */
export function noteDelays(needs: ReadyTimeNeeds, budgets: readonly ListedBudget[]): void {
  needs.delayed = budgets.flatMap(({ ref: { namespace, name }, matchLabels, object }) =>
    matchLabels && delayOf(object) > 0 ? [{ namespace, name, matchLabels }] : [],
  );
  const selectors = new Map(needs.delayed.map((budget) => [`${budget.namespace} ${selectorText(budget)}`, budget]));
  for (const key of needs.outsideGroups.keys()) if (!selectors.has(key)) needs.outsideGroups.delete(key);
  for (const [key, budget] of selectors) needs.outsideGroups.set(key, budget);
}

/** True if the pods of the group must be read, even if its status is settled. */
export function needsReadyTime(zones: readonly Zone[], { groups, delayed }: ReadyTimeNeeds): boolean {
  const [first] = zones;
  const facts = first && groups.get(groupKey(first));
  if (!facts) return delayed.some((budget) => budget.namespace === first?.namespace);
  return facts.isPending || (facts.isCovered && zones.some(({ status }) => status.ready < status.replicas));
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
  needs.groups.set(key, facts);
  const isComplete = await writeReadyTimes(pods, writer, bounds);
  if (!isComplete) needs.groups.set(key, { ...facts, isPending: true });
}
