/** Removes expired reservations from a budget: by the pods of a group that was read, or by their time alone. */
import type { Clock } from "../../../infra/clock.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
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
import type { GroupSnapshot } from "../../model/zone.ts";
import type { ListedBudget } from "./gather-budget.ts";
import { openReservationStore } from "./reservation-store.ts";

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
