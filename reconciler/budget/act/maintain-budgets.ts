/**
 * Maintains disruption budgets beside the rollout: ready times on the pods that they select (§5.7), and the removal of
 * expired reservations.
 *
 *   tick begins --30 s since the last time--> read budgets: those with a delay need ready times
 *   per group whose pods are read: read budgets, once a tick and namespace -> list pods (the tick) -> ready times; remove expired reservations
 *   beside the groups: ready times of pods in no group, under budgets with a delay
 *
 * A settled cluster costs a list of the budgets every 30 s, and one of the StatefulSets of each that has a delay.
 */
import { hasCode } from "../../../infra/errors.ts";
import type { Fence } from "../../../infra/kubernetes/lease.ts";
import { visitEach } from "../../../infra/slots.ts";
import type { GroupSnapshot, Zone, ZoneList } from "../../model/zone.ts";
import type { ListedBudget } from "./gather-budget.ts";
import { createBudgetLists, type BudgetLists, type BudgetReader } from "./budget-lists.ts";
import { removeExpired } from "./expired-reservations.ts";
import { createReadyTimeNeeds, maintainReadyTimes } from "./ready-time-needs.ts";
import { writeReadyTimesOutsideGroups, type ReadyTimeWriter, type WriteBounds } from "./ready-times.ts";

/** The budget maintenance that a tick calls. */
export interface BudgetMaintenance {
  /**
   * Begins a tick over these namespaces ("" for all): resolves with its lists of budgets. Every 30 s it reads them to
   * find those with a delay, which need ready times. Never rejects.
   */
  readonly beginTick: (namespaces: readonly string[]) => Promise<BudgetLists>;
  /** True if the pods of the group must be read for their ready times, even if its status is settled. */
  readonly needsReadyTime: (zones: readonly Zone[]) => boolean;
  /**
   * Maintains one group, with the pods that were read after the budgets; begins no write once the signal fires. Never
   * rejects.
   */
  readonly maintainGroup: (
    group: GroupSnapshot,
    budgets: readonly ListedBudget[],
    bounds: Required<WriteBounds>,
  ) => Promise<void>;
  /**
   * Maintains ready times of pods in none of these groups, once for each time that `beginTick` reads the budgets. Never
   * rejects.
   */
  readonly maintainOthers: (groups: ZoneList["groups"], fence: Fence, signal: AbortSignal) => Promise<void>;
}

const READ_EVERY_MS = 30_000;
/**
 * There may be many budgets: bounds for concurrent reads, and for the time in which reads are started, so that the tick
 * does not wait long.
 */
const OTHERS_AT_A_TIME = 8;
const BEGIN_OTHERS_FOR_MS = 5000;

export function createBudgetMaintenance(tools: BudgetReader & ReadyTimeWriter): BudgetMaintenance {
  const { clock, log } = tools;
  const needs = createReadyTimeNeeds();
  let readAt = -Infinity;

  return {
    async beginTick(namespaces) {
      const lists = createBudgetLists(namespaces, tools);
      if (clock.monotonic() - readAt < READ_EVERY_MS) return lists;
      readAt = clock.monotonic();
      needs.noteDelays(await lists.all());
      return lists;
    },
    needsReadyTime: needs.needsPods,
    async maintainGroup(group, budgets, bounds) {
      try {
        const readyTimes = maintainReadyTimes({ group, budgets, needs }, tools, bounds);
        await Promise.all([
          readyTimes,
          ...budgets.map((budget) => removeExpired(budget, group, { ...tools, ...bounds })),
        ]);
      } catch (error) {
        // Other processes write to budgets as well, and an expired reservation does no harm.
        if (!hasCode(error, "Conflict", "LeaseLost", "Cancelled"))
          log.warn("the disruption budgets could not be maintained", { error });
      }
    },
    async maintainOthers(groups, fence, signal) {
      const grouped = new Set([...groups.values()].flat().map(({ uid }) => uid));
      const startedAt = clock.monotonic();
      await visitEach(needs.outsideGroups, { atOnce: OTHERS_AT_A_TIME, signal }, async ([key, budget]) => {
        if (clock.monotonic() - startedAt >= BEGIN_OTHERS_FOR_MS) return;
        needs.beginOutside(key);
        await writeReadyTimesOutsideGroups({ budget, grouped }, tools, { fence, signal });
      });
    },
  };
}
