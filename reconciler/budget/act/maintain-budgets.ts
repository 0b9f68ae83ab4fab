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
import { type BudgetSource, listBudgets, type ListedBudget, type OnBudgets } from "./gather-budget.ts";
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Log } from "../../../infra/log.ts";
import {
  isSame,
  timeLeft,
  livingReservations,
  presentIn,
  readReservations,
  type Reservation,
  type Reservations,
} from "../reservation.ts";
import { ownerNameOf } from "../../model/order.ts";
import { openReservationStore } from "./reservation-store.ts";

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

export interface BudgetLists {
  /** The budgets of the tick's namespaces; a namespace that cannot be read yields none. Never rejects. */
  readonly all: () => Promise<readonly ListedBudget[]>;
  /**
   * The budgets of one namespace, none if they cannot be read. Must be called before the pods of its groups are read: a
   * new reservation would seem expired otherwise. Never rejects.
   */
  readonly of: (namespace: string) => Promise<readonly ListedBudget[]>;
}

interface BudgetReader extends Pick<BudgetSource, "compilePartition"> {
  readonly cluster: Cluster;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
  readonly onBudgets: OnBudgets;
}

/** For one tick over these namespaces, "" for all. */
function createBudgetLists(namespaces: readonly string[], reader: BudgetReader): BudgetLists {
  const lists = new Map<string, Promise<readonly ListedBudget[]>>();

  function listOnce(scope: string): Promise<readonly ListedBudget[]> {
    const list = lists.get(scope) ?? read(scope, reader);
    lists.set(scope, list);
    return list;
  }

  return {
    all: async () => (await Promise.all(namespaces.map(listOnce))).flat(),
    async of(namespace) {
      const list = await listOnce(namespaces.includes("") ? "" : namespace);
      return list.filter(({ ref }) => ref.namespace === namespace);
    },
  };
}

async function read(
  scope: string,
  { cluster, log, onBudgets, compilePartition }: BudgetReader,
): Promise<readonly ListedBudget[]> {
  try {
    const budgets = await listBudgets(scope, {
      cluster,
      ...(compilePartition && { compilePartition }),
    });
    onBudgets(scope, budgets);
    return budgets ?? [];
  } catch (error) {
    log.warn("the disruption budgets could not be read", { error });
    return [];
  }
}

/**
 * The budget must have been read before the pods of the group; without zones, only time ends reservations. Throws
 * `Conflict` if it has changed since, `LeaseLost`, or the error of the API server. Once `stop` fires, nothing is written.
 */
export async function removeExpired(
  { object }: ListedBudget,
  group: Pick<GroupSnapshot, "zones">,
  { cluster, clock, fence, stop }: Pick<Context, "cluster" | "fence" | "stop"> & { readonly clock: Pick<Clock, "now"> },
): Promise<void> {
  const all = readReservations(object.status?.disruptedPods);
  if (Object.keys(all).length === 0) return;
  const living = keepLiving(all, group, clock.now());
  if (Object.entries(all).every(([key, reservation]) => isSame(living[key], reservation))) return;
  const store = await openReservationStore(cluster, object, {});
  if (!stop.aborted) await store.write(living, fence.write());
}

/**
 * The reservations to keep. One of the group's pods is kept if its pod still exists and its time is not over; one of
 * another pod or of a downscale is kept if its time is not over. The zones may have been read long before the budget:
 * they do not show which downscale is stored. `now` in milliseconds.
 */
function keepLiving(all: Reservations, { zones }: Pick<GroupSnapshot, "zones">, now: number): Reservations {
  const isOurs = ([key, { kind }]: [string, Reservation]): boolean =>
    kind !== "downscale" && zones.some(({ name }) => ownerNameOf(key) === name);
  const others = Object.entries(all).filter((entry) => !isOurs(entry) && timeLeft(entry[1], now) > 0);
  const ours = Object.entries(all).filter(isOurs);
  return { ...Object.fromEntries(others), ...livingReservations(Object.fromEntries(ours), presentIn(zones), now) };
}
