/** Releases a reservation before it expires, so that the budget is free again at once. */
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import { hasCode } from "../../../infra/errors.ts";
import { disruptionBudgets } from "../../../infra/kubernetes/resources.ts";
import type { ReservationHandle } from "./disruption-request.ts";
import { isSame } from "../reservation.ts";
import { openReservationStore } from "./reservation-store.ts";

const MAX_TRIES = 5;

/** Removes exactly this reservation, not a later one of the same pod. Never rejects: a reservation that cannot be removed expires. */
export async function releaseReservation(cluster: Cluster, handle: ReservationHandle, call: Call): Promise<void> {
  const { namespace, budget: name, key, before } = handle;
  for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
    try {
      const budget = await cluster.get(disruptionBudgets, { namespace, name }, call);
      const store = await openReservationStore(cluster, budget, call);
      const { [key]: found, ...others } = store.reservations;
      if (isSame(found, handle)) await store.write({ ...others, ...(before && { [key]: before }) }, call);
      return;
    } catch (error) {
      if (!hasCode(error, "Conflict")) return;
    }
  }
}
