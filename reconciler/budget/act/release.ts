/** Releases a reservation before it expires, so that the budget is free again at once. */
import type { Clock } from "../../../infra/clock.ts";
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import { disruptionBudgets } from "../../../infra/kubernetes/resources.ts";
import { retryOnConflict } from "../../../infra/kubernetes/retry-on-conflict.ts";
import type { ReservationHandle } from "./disruption-request.ts";
import { isSame } from "../reservation.ts";
import { openReservationStore } from "./reservation-store.ts";

/**
 * Removes exactly this reservation, not a later one of the same pod. Never rejects: a reservation that cannot be
 * removed expires.
 */
export async function releaseReservation(
  { cluster, clock }: { readonly cluster: Cluster; readonly clock: Clock },
  handle: ReservationHandle,
  call: Call,
): Promise<void> {
  const { namespace, budget: name, key, before } = handle;
  const attempt = async (): Promise<void> => {
    const budget = await cluster.get(disruptionBudgets, { namespace, name }, call);
    const store = await openReservationStore(cluster, budget, call);
    const { [key]: found, ...others } = store.reservations;
    if (isSame(found, handle)) await store.write({ ...others, ...(before && { [key]: before }) }, call);
  };
  await retryOnConflict(attempt, { clock, call }).catch(() => {});
}
