/**
 * Maintains disruption budgets beside the rollout: ready times on the pods that they select (§5.7), and an end to reservations that are over.
 *
 *   tick begins --30 s since the last time--> read budgets: delays make ready times matter
 *   per group that is looked at: read budgets, once a tick and namespace -> list pods (the tick) -> ready times; remove expired reservations
 *   beside the groups: ready times of pods in no group, under budgets with a delay
 *
 * A settled cluster costs a list of the budgets every 30 s, and one of the StatefulSets of each that has a delay.
 */
import { hasCode } from "../../infra/errors.ts";
import type { Fence } from "../../infra/kubernetes/lease.ts";
import { visitEach } from "../../infra/slots.ts";
import type { ZoneList } from "../gather.ts";
import type { GroupSnapshot, Zone } from "../model/zone.ts";
import type { ListedBudget } from "../reservations/gather-budget.ts";
import { listOnce, readNamespace, startBudgetLists, type BudgetLists, type BudgetReader } from "./budget-lists.ts";
import { removeExpired } from "./expired-reservations.ts";
import { maintainReadyTimes, needsReadyTime, noteDelays, noReadyTimes } from "./ready-time-needs.ts";
import { writeReadyTimesOutsideGroups, type ReadyTimeWriter } from "./ready-times.ts";

/** What the tick calls. */
export interface BudgetMaintenance {
  /** Begins a tick over these namespaces ("" for all). Every 30 s it reads the budgets, to know where delays make ready times matter. Never rejects. */
  readonly beginTick: (namespaces: readonly string[]) => Promise<BudgetLists>;
  /** True if the group of these zones has to be looked at for the sake of ready times, even if its status says that there is nothing to do. */
  readonly needsReadyTime: (zones: readonly Zone[]) => boolean;
  /** The budgets of a namespace, read once a tick; before the pods of its groups, or a new reservation would seem to be over. Never rejects. */
  readonly readBudgets: (namespace: string, lists: BudgetLists) => Promise<readonly ListedBudget[]>;
  /** Maintains one group, with the pods that were read after the budgets; never rejects. */
  readonly maintainGroup: (group: GroupSnapshot, budgets: readonly ListedBudget[], fence: Fence) => Promise<void>;
  /** Maintains ready times of pods in none of these groups, once for each time that `beginTick` reads the budgets. Never rejects. */
  readonly maintainOthers: (groups: ZoneList["groups"], fence: Fence, signal: AbortSignal) => Promise<void>;
}

const READ_EVERY_MS = 30_000;
/** Anyone who may write budgets may write many: so many are looked at at once, and none is begun after this time, or the tick would wait for them. */
const OTHERS_AT_A_TIME = 8;
const BEGIN_OTHERS_FOR_MS = 5000;

export function createBudgetMaintenance(tools: BudgetReader & ReadyTimeWriter): BudgetMaintenance {
  const { clock, log } = tools;
  const needs = noReadyTimes();
  let readAt = -Infinity;

  return {
    async beginTick(namespaces) {
      const lists = startBudgetLists(namespaces);
      if (clock.monotonic() - readAt < READ_EVERY_MS) return lists;
      readAt = clock.monotonic();
      noteDelays(needs, (await Promise.all(namespaces.map((scope) => listOnce(scope, lists, tools)))).flat());
      return lists;
    },
    needsReadyTime: (zones) => needsReadyTime(zones, needs),
    readBudgets: (namespace, lists) => readNamespace(namespace, lists, tools),
    async maintainGroup(group, budgets, fence) {
      try {
        const readyTimes = maintainReadyTimes({ group, budgets, needs }, tools, fence);
        await Promise.all([readyTimes, ...budgets.map((budget) => removeExpired(budget, group, { ...tools, fence }))]);
      } catch (error) {
        // Other processes write to budgets, too; an expired reservation does no harm.
        if (!hasCode(error, "Conflict")) log.warn("the disruption budgets could not be maintained", { error });
      }
    },
    async maintainOthers(groups, fence, signal) {
      const grouped = new Set([...groups.values()].flat().map(({ uid }) => uid));
      const startedAt = clock.monotonic();
      await visitEach(needs.outsideGroups, { atOnce: OTHERS_AT_A_TIME, signal }, async ([key, budget]) => {
        if (clock.monotonic() - startedAt >= BEGIN_OTHERS_FOR_MS) return;
        needs.outsideGroups.delete(key);
        await writeReadyTimesOutsideGroups({ budget, grouped }, tools, { fence, signal });
      });
    },
  };
}
