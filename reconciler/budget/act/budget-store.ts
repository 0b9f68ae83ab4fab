/**
 * What is stored of budgets: themselves, the StatefulSets and pods under one, and its reservations. Budgets and their
 * reservations are read first, so that the write of reservations proves the rest fresh (§13.1).
 *
 * Reservations are kept in the budget's `status.disruptedPods`, or in a Lease beside it if the definition has no such
 * field:
 *
 *   the budget has the field --> its status alone
 *   it has not (the definition drops it, or nothing was ever reserved) --> Lease and status are read; both are written, or the status alone if it
 *                                                                          keeps what was written and the Lease has nothing
 *
 * So the reservations of a Lease count until the first write to a definition that keeps them.
 */
import type { Source } from "../../../infra/kubernetes/context.ts";
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import { absent, RolloutError } from "../../../infra/errors.ts";
import { visitEach } from "../../../infra/slots.ts";
import { disruptionBudgets, type DisruptionBudget } from "../../../infra/kubernetes/custom-resources.ts";
import { type ObjectMeta, pods, statefulSets, type Lease } from "../../../infra/kubernetes/resources.ts";
import { readPod, type Pod } from "../../model/pod.ts";
import { selectorText } from "../../model/label-selector.ts";
import { readZone, withPods, type ZoneWithPods } from "../../model/zone.ts";
import { type StoredBudget, BUDGET_KIND, parseBudget, selectorOf, type Budget } from "../zpdb.ts";
import { countMissing } from "../../model/readiness.ts";
import { findOrphans, readAll } from "../../snapshot/gather.ts";
import { byName } from "../../model/order.ts";
import { changeLease, getLease, type LeaseRef, writeLease } from "../../../infra/kubernetes/lease-object.ts";
import { isSame, readReservations, type ReservationHandle, type Reservations } from "../reservation.ts";

export interface ListedBudget extends StoredBudget {
  readonly object: DisruptionBudget;
}

export interface BudgetSource extends Source {
  /** Logs whether the definition of budgets is installed. */
  readonly noteKind?: (isFound: boolean) => void;
}

/** All budgets of the namespace ("" for all), valid or not; none if the cluster does not know the kind. */
export async function listBudgets(namespace: string, source: BudgetSource, call?: Call): Promise<ListedBudget[]> {
  const query = namespace === "" ? {} : { namespace };
  const list = await readAll({ resource: disruptionBudgets, query, read: readBudget }, source, call).catch(absent);
  source.noteKind?.(list !== undefined);
  return list?.items ?? [];
}

/**
 * Its content is read on its first use: compiling the pattern takes milliseconds, and only one budget of a list
 * decides.
 */
function readBudget({ metadata, ...rest }: DisruptionBudget): ListedBudget {
  const object = { ...rest, metadata: withoutNotes(metadata) };
  const { namespace = "", name = "", uid = "" } = metadata;
  let content: ListedBudget["content"] | undefined;
  return {
    ref: { kind: BUDGET_KIND, namespace, name, uid },
    matchLabels: selectorOf(object),
    object,
    get content() {
      // Items of a list may come without their kind.
      return (content ??= parseBudget({ kind: BUDGET_KIND, ...object }));
    },
  };
}

/** What else its metadata has may be large, and a write of the status leaves it as it is. */
function withoutNotes({ namespace, name, uid, resourceVersion, generation }: ObjectMeta): ObjectMeta {
  const known = { namespace, name, uid, resourceVersion, generation };
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined));
}

export interface UnderBudget {
  /** In byte order of their names. */
  readonly zones: readonly ZoneWithPods[];
  /** All pods that the budget selects, of any owner, by name. */
  readonly pods: ReadonlyMap<string, Pod>;
}

/** Lists of pods in flight for one budget. */
const LISTS_AT_ONCE = 8;

/**
 * The StatefulSets and pods under a budget, with two concurrent lists. Where pods of a StatefulSet seem to be missing,
 * all that it selects are listed: they may lack the budget's labels. These lists run at once, because a verdict waits
 * for all of them. Pods whose StatefulSet is gone, or not under the budget, count as a zone, too (orphans.ts).
 */
export async function gatherUnderBudget(
  { namespace, matchLabels }: Pick<Budget, "namespace" | "matchLabels">,
  source: Source,
  call?: Call,
): Promise<UnderBudget> {
  const listPods = async (labelSelector: string): Promise<readonly Pod[]> =>
    (await readAll({ resource: pods, query: { namespace, labelSelector }, read: readPod }, source, call)).items;
  const labelSelector = selectorText({ matchLabels });
  const [sets, selected] = await Promise.all([
    readAll({ resource: statefulSets, query: { namespace, labelSelector }, read: readZone }, source, call),
    listPods(labelSelector),
  ]);
  const orphans = await findOrphans(selected, sets.items, { ...source, call });
  const left = orphans.filter(({ orphaned }) => orphaned !== "outside");
  const outside = orphans.filter(({ orphaned }) => orphaned === "outside");
  const zones = [...sets.items, ...outside].map((zone) => withPods(zone, selected));
  const lacking = [...zones.entries()].filter(([, zone]) => countMissing(zone, zone.pods) > 0);
  await visitEach(lacking, { atOnce: LISTS_AT_ONCE }, async ([i, zone]) => {
    zones[i] = withPods(zone, await listPods(selectorText(zone.selector)));
  });
  // Of two zones of one name, the StatefulSet comes first.
  return { zones: [...zones, ...left].toSorted(byName), pods: new Map(selected.map((pod) => [pod.name, pod])) };
}

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
  const lease = written === undefined ? await getLease(cluster, leaseRefOf(budget), call) : undefined;
  const reservations = readReservations(written ?? parseNote(lease?.metadata?.annotations?.[NOTE]));
  return {
    reservations,
    async write(next, bounds) {
      const isKept = await writeToStatus(cluster, { budget, next }, bounds);
      // The definition keeps no reservations any more: the next attempt finds the field gone.
      if (written !== undefined && !isKept)
        throw new RolloutError("Conflict", "the definition of disruption budgets keeps no reservations");
      if (written === undefined && (!isKept || Object.keys(reservations).length > 0))
        await writeLease(cluster, leaseOf(budget, lease, next), bounds);
    },
  };
}

/** Removes this very reservation; a later one of the same pod stays. */
export async function releaseReservation(cluster: Cluster, handle: ReservationHandle, call: Call): Promise<void> {
  const { namespace, budget: name, key } = handle;
  const budget = await cluster.get(disruptionBudgets, { namespace, name }, call);
  const store = await openReservationStore(cluster, budget, call);
  const { [key]: found, ...others } = store.reservations;
  if (isSame(found, handle)) await store.write(others, call);
}

/**
 * True if the answer has the reservations that were written. An unchanged status is written, too: the write proves
 * that the budget has not changed since it was read. It fails with `Conflict` on a CRD without the field, too.
 */
async function writeToStatus(
  cluster: Cluster,
  { budget, next }: { readonly budget: DisruptionBudget; readonly next: Reservations },
  call: Call,
): Promise<boolean> {
  const { namespace = "", name = "" } = budget.metadata;
  const { group, version } = disruptionBudgets;
  const body = {
    ...budget,
    apiVersion: `${group}/${version}`,
    kind: BUDGET_KIND,
    status: { ...budget.status, disruptedPods: next },
  };
  const stored = await cluster
    .replace(disruptionBudgets, { namespace, name, subresource: "status", body }, call)
    .catch(absent);
  // No such budget any more, or no such subresource.
  if (!stored) return false;
  const kept = readReservations(stored.status?.disruptedPods);
  return Object.entries(next).every(([key, reservation]) => isSame(kept[key], reservation));
}

const leaseRefOf = ({ metadata }: DisruptionBudget): LeaseRef => ({
  namespace: metadata.namespace ?? "",
  name: `zonewise-budget-${metadata.uid ?? ""}`,
});

/** The garbage collector deletes the Lease with its budget. */
function leaseOf(budget: DisruptionBudget, found: Lease | undefined, next: Reservations): Lease {
  const { name = "", uid = "" } = budget.metadata;
  const { group, version } = disruptionBudgets;
  const owner = { apiVersion: `${group}/${version}`, kind: BUDGET_KIND, name, uid };
  return changeLease(leaseRefOf(budget), found, { annotations: { [NOTE]: JSON.stringify(next) }, owner });
}

function parseNote(note: string | undefined): unknown {
  try {
    return JSON.parse(note ?? "{}");
  } catch {
    return {};
  }
}
