/**
 * Maintains disruption budgets beside the rollout: removes expired reservations.
 *
 *   tick begins --30 s since the last time--> read budgets
 *   per group whose pods are read: read budgets, once a tick and namespace -> list pods (the tick) -> remove expired reservations
 *   beside the groups: remove reservations whose time is over from the budgets read, whatever their group
 *
 * A settled cluster costs a list of the budgets every 30 s.
 */
import { hasCode } from "../../../infra/errors.ts";
import { visitEach } from "../../../infra/slots.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import type { GroupSnapshot } from "../../model/zone.ts";
import type { ListedBudget } from "./gather-budget.ts";
import { createBudgetLists, type BudgetLists, type BudgetReader } from "./budget-lists.ts";
import { removeExpired } from "./expired-reservations.ts";

/** Once `stop` fires, no further write begins. */
type WriteBounds = Pick<Context, "fence" | "stop">;

/** The budget maintenance that a tick calls. */
export interface BudgetMaintenance {
  /**
   * Begins a tick over these namespaces ("" for all): resolves with its lists of budgets. Every 30 s it reads them for
   * `sweep`. Never rejects.
   */
  readonly beginTick: (namespaces: readonly string[]) => Promise<BudgetLists>;
  /**
   * Maintains one group, with the pods that were read after the budgets; begins no write once `stop` fires. Never
   * rejects.
   */
  readonly maintainGroup: (
    group: GroupSnapshot,
    budgets: readonly ListedBudget[],
    context: WriteBounds,
  ) => Promise<void>;
  /**
   * Removes reservations whose time is over, once for each read of the budgets by `beginTick`: nobody reads the pods
   * of a settled group. Never rejects.
   */
  readonly sweep: (context: WriteBounds) => Promise<void>;
}

const READ_EVERY_MS = 30_000;
/**
 * There may be many budgets. Concurrent writes and the time in which writes begin are bounded, so that the tick does
 * not wait long.
 */
const SWEPT_AT_A_TIME = 8;
const BEGIN_TO_SWEEP_FOR_MS = 5000;

export function createBudgetMaintenance(tools: BudgetReader): BudgetMaintenance {
  const { clock, log } = tools;
  let readAt = -Infinity;
  /** Budgets that were read and may still have reservations whose time is over. */
  let unswept: ListedBudget[] = [];

  const tell = (error: unknown): void => {
    // Other processes write to budgets as well, and an expired reservation does no harm.
    if (!hasCode(error, "Conflict", "LeaseLost", "Cancelled"))
      log.warn("the disruption budgets could not be maintained", { error });
  };

  return {
    async beginTick(namespaces) {
      const lists = createBudgetLists(namespaces, tools);
      if (clock.monotonic() - readAt < READ_EVERY_MS) return lists;
      readAt = clock.monotonic();
      unswept = [...(await lists.all())];
      return lists;
    },
    async maintainGroup(group, budgets, { fence, stop }) {
      try {
        await Promise.all(budgets.map((budget) => removeExpired(budget, group, { ...tools, fence, stop })));
      } catch (error) {
        tell(error);
      }
    },
    async sweep({ fence, stop }) {
      const startedAt = clock.monotonic();
      const bounds = { atOnce: SWEPT_AT_A_TIME, signal: stop };
      const mayBegin = (): boolean => clock.monotonic() - startedAt < BEGIN_TO_SWEEP_FOR_MS;
      // Budgets that are left over are listed again for the next sweep.
      await visitEach(unswept.splice(0), bounds, async (budget) => {
        if (mayBegin()) await removeExpired(budget, { zones: [] }, { ...tools, fence, stop }).catch(tell);
      });
    },
  };
}
