/** Removes expired reservations from a budget, when a group under it is read. */
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import type { Fence } from "../../infra/kubernetes/lease.ts";
import { livingReservations, readReservations, type Reservations } from "../budget/reservation.ts";
import type { GroupSnapshot } from "../model/zone.ts";
import type { ListedBudget } from "../reservations/gather-budget.ts";
import { openReservationStore } from "../reservations/reservation-store.ts";

export interface ExpiryTools {
  readonly cluster: Cluster;
  readonly clock: Pick<Clock, "now">;
  readonly fence: Fence;
}

/** The budget must have been read before the pods of the group. Throws `Conflict` if it has changed since, `LeaseLost`, or the error of the API server. */
export async function removeExpired({ object }: ListedBudget, group: GroupSnapshot, { cluster, clock, fence }: ExpiryTools): Promise<void> {
  const all = readReservations(object.status?.disruptedPods);
  if (Object.keys(all).length === 0) return;
  const living = keepLiving(all, group, clock.now());
  if (Object.keys(living).length === Object.keys(all).length) return;
  const store = await openReservationStore(cluster, { budget: object, withLease: false }, {});
  await store.write(living, fence.write());
}

/** The reservations to keep: of the group's pods, those of pods that still exist; of other pods, those that have not expired. `now` in milliseconds. */
function keepLiving(all: Reservations, { zones }: GroupSnapshot, now: number): Reservations {
  const uids = new Map(zones.flatMap((zone) => zone.pods).map((pod) => [pod.name, pod.uid]));
  const isOurs = (pod: string): boolean => zones.some((zone) => pod.slice(0, pod.lastIndexOf("-")) === zone.name);
  return livingReservations(all, (pod) => (isOurs(pod) ? uids.get(pod) : all[pod]?.uid), now);
}
