/** Which groups, and which pods outside of groups, need a look for the sake of ready times (§5.7): what a process remembers of that, as a hint only. */
import type { Fence } from "../../infra/kubernetes/lease.ts";
import { matchesLabels } from "../budget/selector.ts";
import type { Budget } from "../budget/zpdb.ts";
import { groupKey, selectorText, type GroupSnapshot, type Zone } from "../model/zone.ts";
import type { ListedBudget } from "../reservations/gather-budget.ts";
import { writeReadyTimes, type ReadyTimeWriter } from "./ready-times.ts";

export interface ReadyTimeNeeds {
  /** The last look at each group, by its key. */
  readonly looks: Map<string, GroupLook>;
  /** Budgets with a delay, as they were last read. */
  delayed: readonly Budget[];
  /** One of them for each selector whose pods outside of groups have not been looked at since, those first that have waited for longest. */
  readonly outsideGroups: Map<string, Budget>;
}

interface GroupLook {
  /** A budget selects some of its pods. */
  readonly isCovered: boolean;
  /** A pod of those was not ready, or could not be given its ready time. */
  readonly isPending: boolean;
}

export const noReadyTimes = (): ReadyTimeNeeds => ({ looks: new Map(), delayed: [], outsideGroups: new Map() });

/** Remembers which of the budgets, all that a tick may read, have a delay. */
export function noteDelays(needs: ReadyTimeNeeds, budgets: readonly ListedBudget[]): void {
  needs.delayed = budgets.flatMap(({ content }) => (hasDelay(content) ? [content] : []));
  const selectors = new Map(needs.delayed.map((budget) => [`${budget.namespace} ${selectorText(budget)}`, budget]));
  for (const key of needs.outsideGroups.keys()) if (!selectors.has(key)) needs.outsideGroups.delete(key);
  for (const [key, budget] of selectors) needs.outsideGroups.set(key, budget);
}

const hasDelay = (content: ListedBudget["content"]): content is Budget => !("problem" in content) && content.crossZoneEvictionDelayMs > 0;

/** True if the group of these zones has to be looked at, even if its status says that there is nothing to do. */
export function needsReadyTime(zones: readonly Zone[], { looks, delayed }: ReadyTimeNeeds): boolean {
  const [first] = zones;
  const look = first && looks.get(groupKey(first));
  if (!look) return delayed.some((budget) => budget.namespace === first?.namespace);
  return look.isPending || (look.isCovered && zones.some(({ status }) => status.ready < status.replicas));
}

export interface GroupToMaintain {
  readonly group: GroupSnapshot;
  /** Those of its namespace. */
  readonly budgets: readonly ListedBudget[];
  readonly needs: ReadyTimeNeeds;
}

/** Brings the ready times of the group's pods under budgets up to date, and remembers if it needs another look. Throws `LeaseLost`. */
export async function maintainReadyTimes({ group, budgets, needs }: GroupToMaintain, writer: ReadyTimeWriter, fence: Fence): Promise<void> {
  const covered = group.zones.filter((zone) =>
    budgets.some(({ matchLabels }) => matchLabels && matchesLabels(matchLabels, zone.podLabels)),
  );
  const pods = covered.flatMap((zone) => zone.pods);
  const key = groupKey({ namespace: group.namespace, group: group.name });
  const look = { isCovered: covered.length > 0, isPending: pods.some((pod) => !pod.ready) };
  needs.looks.set(key, look);
  const isComplete = await writeReadyTimes(pods, writer, { fence });
  if (!isComplete) needs.looks.set(key, { ...look, isPending: true });
}
