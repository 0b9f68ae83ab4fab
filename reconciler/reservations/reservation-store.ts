/**
 * Where reservations are kept: in the budget's `status.disruptedPods`, or in a Lease beside it where the CRD has no such field.
 *
 *   status written with the version read first --its answer has them--> kept
 *                                              --its answer has not--> lost: the same again in a Lease, read first and written with its version
 */
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { absent, hasCode, RolloutError } from "../../infra/errors.ts";
import { disruptionBudgets, leases, type DisruptionBudget, type Lease } from "../../infra/kubernetes/resources.ts";
import { isSame, readReservations, type Reservations } from "../budget/reservation.ts";

export interface ReservationStore {
  readonly reservations: Reservations;
  /** Replaces them all. Throws `Conflict` if anybody has written since, or what the cluster says. */
  readonly write: (next: Reservations, call: Call) => Promise<"kept" | "lost">;
}

const NOTE = "zonewise/disrupted-pods";

/** The store of a budget as it was read; `withLease` reads the Lease as well, which must come before StatefulSets and pods. */
export async function openReservationStore(
  cluster: Cluster,
  budget: DisruptionBudget,
  withLease: boolean,
  call: Call,
): Promise<ReservationStore> {
  const leaseRef = { namespace: budget.metadata.namespace ?? "", name: leaseName(budget) };
  const lease = withLease ? await cluster.get(leases, leaseRef, call).catch(absent) : undefined;
  const noted = readReservations(parseNote(lease?.metadata?.annotations?.[NOTE]));
  return {
    reservations: { ...noted, ...readReservations(budget.status?.disruptedPods) },
    async write(next, bounds) {
      const kept = await writeStatus(cluster, budget, next, bounds);
      if (!withLease) return kept ? "kept" : "lost";
      if (kept && Object.keys(noted).length === 0) return "kept";
      await writeLease(cluster, budget, lease, next, bounds);
      return "kept";
    },
  };
}

/** True if the answer has what was written. The write fails with `Conflict` on a CRD without the field, too. */
async function writeStatus(cluster: Cluster, budget: DisruptionBudget, next: Reservations, call: Call): Promise<boolean> {
  const { namespace = "", name = "" } = budget.metadata;
  const { group, version } = disruptionBudgets;
  const body = {
    ...budget,
    apiVersion: `${group}/${version}`,
    kind: "ZoneAwarePodDisruptionBudget",
    status: { ...budget.status, disruptedPods: next },
  };
  const stored = await cluster.replace(disruptionBudgets, { namespace, name, subresource: "status" }, body, call).catch(absent);
  // No such budget any more, or no such subresource.
  if (!stored) return false;
  const kept = readReservations(stored.status?.disruptedPods);
  return Object.entries(next).every(([pod, reservation]) => isSame(kept[pod], reservation));
}

const leaseName = ({ metadata }: DisruptionBudget): string => `zonewise-budget-${metadata.uid ?? ""}`;

/** The Lease goes with the budget. */
async function writeLease(
  cluster: Cluster,
  budget: DisruptionBudget,
  found: Lease | undefined,
  next: Reservations,
  call: Call,
): Promise<void> {
  const { namespace = "", name = "", uid = "" } = budget.metadata;
  const { group, version } = disruptionBudgets;
  const ref = { namespace, name: leaseName(budget) };
  const owner = { apiVersion: `${group}/${version}`, kind: "ZoneAwarePodDisruptionBudget", name, uid };
  const annotations = { ...found?.metadata?.annotations, [NOTE]: JSON.stringify(next) };
  const lease = {
    ...found,
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { ...found?.metadata, ...ref, annotations, ownerReferences: [owner] },
  };
  if (found) {
    await cluster.replace(leases, ref, lease, call);
    return;
  }
  try {
    await cluster.create(leases, namespace, lease, call);
  } catch (error) {
    if (!hasCode(error, "AlreadyExists")) throw error;
    throw new RolloutError("Conflict", error.message, { cause: error });
  }
}

function parseNote(note: string | undefined): unknown {
  try {
    return JSON.parse(note ?? "{}");
  } catch {
    return {};
  }
}
