/**
 * Where reservations are kept: in the budget's `status.disruptedPods`, or in a Lease beside it where the CRD has no such field.
 *
 *   status written with the version read first --its answer has them--> kept
 *                                              --its answer has not--> lost: the same again in a Lease, read first and written with its version
 */
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { absent } from "../../infra/errors.ts";
import { changeLease, getLease, type LeaseRef, writeLease } from "../../infra/kubernetes/lease-object.ts";
import { disruptionBudgets, type DisruptionBudget, type Lease } from "../../infra/kubernetes/resources.ts";
import { isSame, readReservations, type Reservations } from "../budget/reservation.ts";

export interface ReservationStore {
  readonly reservations: Reservations;
  /** Replaces all reservations. Throws `Conflict` if another process has written since, or the error of the API server. */
  readonly write: (next: Reservations, call: Call) => Promise<"kept" | "lost">;
}

const NOTE = "zonewise/disrupted-pods";

export interface StoreOptions {
  /** As it was read. */
  readonly budget: DisruptionBudget;
  /** Reads the Lease as well, which must come before StatefulSets and pods. */
  readonly withLease: boolean;
}

/** The store of a budget. */
export async function openReservationStore(cluster: Cluster, { budget, withLease }: StoreOptions, call: Call): Promise<ReservationStore> {
  const lease = withLease ? await getLease(cluster, leaseRefOf(budget), call) : undefined;
  const noted = readReservations(parseNote(lease?.metadata?.annotations?.[NOTE]));
  return {
    reservations: { ...noted, ...readReservations(budget.status?.disruptedPods) },
    async write(next, bounds) {
      const kept = await writeStatus(cluster, { budget, next }, bounds);
      if (!withLease) return kept ? "kept" : "lost";
      if (kept && Object.keys(noted).length === 0) return "kept";
      await writeLease(cluster, leaseOf(budget, lease, next), bounds);
      return "kept";
    },
  };
}

interface StatusChange {
  readonly budget: DisruptionBudget;
  readonly next: Reservations;
}

/** True if the answer has what was written. The write fails with `Conflict` on a CRD without the field, too. */
async function writeStatus(cluster: Cluster, { budget, next }: StatusChange, call: Call): Promise<boolean> {
  const { namespace = "", name = "" } = budget.metadata;
  const { group, version } = disruptionBudgets;
  const body = {
    ...budget,
    apiVersion: `${group}/${version}`,
    kind: "ZoneAwarePodDisruptionBudget",
    status: { ...budget.status, disruptedPods: next },
  };
  const stored = await cluster.replace(disruptionBudgets, { namespace, name, subresource: "status", body }, call).catch(absent);
  // No such budget any more, or no such subresource.
  if (!stored) return false;
  const kept = readReservations(stored.status?.disruptedPods);
  return Object.entries(next).every(([pod, reservation]) => isSame(kept[pod], reservation));
}

const leaseRefOf = ({ metadata }: DisruptionBudget): LeaseRef => ({
  namespace: metadata.namespace ?? "",
  name: `zonewise-budget-${metadata.uid ?? ""}`,
});

/** The Lease goes with the budget. */
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
