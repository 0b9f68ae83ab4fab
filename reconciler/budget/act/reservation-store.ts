/**
 * Keeps reservations in the budget's `status.disruptedPods`, or in a Lease beside it if the definition has no such
 * field.
 *
 *   the budget has the field --> its status alone
 *   it has not (the definition drops it, or nothing was ever reserved) --> Lease and status are read; both are written, or the status alone if it
 *                                                                          keeps what was written and the Lease has nothing
 *
 * So the reservations of a Lease count until the first write to a definition that keeps them.
 */
import { absent, RolloutError } from "../../../infra/errors.ts";
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import { changeLease, getLease, type LeaseRef, writeLease } from "../../../infra/kubernetes/lease-object.ts";
import { disruptionBudgets, type DisruptionBudget } from "../../../infra/kubernetes/custom-resources.ts";
import type { Lease } from "../../../infra/kubernetes/resources.ts";
import { isSame, readReservations, type Reservations } from "../reservation.ts";

interface ReservationStore {
  readonly reservations: Reservations;
  /**
   * Replaces all reservations. Throws `Conflict` if another process has written since, or the error of the API server.
   */
  readonly write: (next: Reservations, call: Call) => Promise<void>;
}

const NOTE = "zonewise/disrupted-pods";

/** The store of a budget as it was read; it must be opened before StatefulSets and pods are read. */
export async function openReservationStore(
  cluster: Cluster,
  budget: DisruptionBudget,
  call: Call,
): Promise<ReservationStore> {
  const written = budget.status?.disruptedPods;
  if (written !== undefined)
    return {
      reservations: readReservations(written),
      write: (next, bounds) => keepStatus(cluster, { budget, next }, bounds),
    };
  const lease = await getLease(cluster, leaseRefOf(budget), call);
  const reservations = readReservations(parseNote(lease?.metadata?.annotations?.[NOTE]));
  return {
    reservations,
    async write(next, bounds) {
      const kept = await writeReservations(cluster, { budget, next }, bounds);
      if (!kept || Object.keys(reservations).length > 0)
        await writeLease(cluster, leaseOf(budget, lease, next), bounds);
    },
  };
}

/** Throws `Conflict` if the definition keeps no reservations any more: the next attempt finds the field gone. */
async function keepStatus(cluster: Cluster, change: StatusChange, call: Call): Promise<void> {
  if (!(await writeReservations(cluster, change, call)))
    throw new RolloutError("Conflict", "the definition of disruption budgets keeps no reservations");
}

interface StatusChange {
  readonly budget: DisruptionBudget;
  readonly next: Reservations;
}

/**
 * True if the answer has the reservations that were written. An unchanged status is written, too: the write proves
 * that the budget has not changed since it was read. It fails with `Conflict` on a CRD without the field, too.
 */
async function writeReservations(cluster: Cluster, { budget, next }: StatusChange, call: Call): Promise<boolean> {
  const { namespace = "", name = "" } = budget.metadata;
  const { group, version } = disruptionBudgets;
  const body = {
    ...budget,
    apiVersion: `${group}/${version}`,
    kind: "ZoneAwarePodDisruptionBudget",
    status: { ...budget.status, disruptedPods: next },
  };
  const stored = await cluster
    .replace(disruptionBudgets, { namespace, name, subresource: "status", body }, call)
    .catch(absent);
  // No such budget any more, or no such subresource.
  if (!stored) return false;
  const kept = readReservations(stored.status?.disruptedPods);
  return Object.entries(next).every(([pod, reservation]) => isSame(kept[pod], reservation));
}

const leaseRefOf = ({ metadata }: DisruptionBudget): LeaseRef => ({
  namespace: metadata.namespace ?? "",
  name: `zonewise-budget-${metadata.uid ?? ""}`,
});

/** The garbage collector deletes the Lease with its budget. */
function leaseOf(budget: DisruptionBudget, found: Lease | undefined, next: Reservations): Lease {
  const { name = "", uid = "" } = budget.metadata;
  const { group, version } = disruptionBudgets;
  const owner = { apiVersion: `${group}/${version}`, kind: "ZoneAwarePodDisruptionBudget", name, uid };
  return changeLease(leaseRefOf(budget), found, { annotations: { [NOTE]: JSON.stringify(next) }, owner });
}

function parseNote(note: string | undefined): unknown {
  try {
    return JSON.parse(note ?? "{}");
  } catch {
    return {};
  }
}
