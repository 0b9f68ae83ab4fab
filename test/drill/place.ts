/**
 * The place of a drill. A drill removes all its objects at the end.
 *
 *   made, expires in a minute --renewed every 15 s--> removed at the end, or after a Ctrl-C
 *                             --killed--> expired --the next run, or --clean--> removed
 */
import type { Clock } from "../../infra/clock.ts";
import { absent, hasCode, isTransient } from "../../infra/errors.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { collect } from "../../infra/kubernetes/collect.ts";
import { disruptionBudgets } from "../../infra/kubernetes/custom-resources.ts";
import { leases, pods, statefulSets, type ObjectMeta, type Resource } from "../../infra/kubernetes/resources.ts";
import { nameLease } from "../../reconciler/downscale/act/downscale-lease.ts";
import { expiryOf, isRunName, LABEL, marks, RENEWAL_MS } from "./plan.ts";

export interface Caller {
  readonly cluster: Cluster;
  readonly clock: Clock;
}

/** Where the objects of a run are. */
export interface Place {
  readonly run: string;
  readonly namespace: string;
}

interface Marked {
  readonly metadata?: ObjectMeta;
}

/** Renews the expiry, which the budget records, until the signal fires. Never rejects: a lost renewal is followed by others. */
export async function renew({ cluster, clock }: Caller, { run, namespace }: Place, signal: AbortSignal): Promise<void> {
  for (;;) {
    await clock.sleep(RENEWAL_MS, signal);
    if (signal.aborted) return;
    const { annotations } = marks(run, clock.now());
    const change = { namespace, name: run, type: "merge", body: { metadata: { annotations } } } as const;
    await cluster.patch(disruptionBudgets, change, { signal }).catch(() => "");
  }
}

/** Milliseconds until removed objects must be gone, and between two reads. */
const REMOVAL_MS = 180_000;
const READ_PAUSE_MS = 1000;

/** Consecutive empty reads before the objects count as gone: an abandoned write may still take effect. */
const EMPTY_READS = 2;

/**
 * Removes the objects of the run; resolves with true once all of them are gone. Throws errors that a retry does not
 * fix.
 */
export async function removePlace(caller: Caller, place: Place): Promise<boolean> {
  const { cluster, clock } = caller;
  const end = clock.monotonic() + REMOVAL_MS;
  for (let empty = 0; ;) {
    const isGone = await removeObjects(cluster, place).catch((error: unknown) => {
      if (!isTransient(error)) throw error;
      return false;
    });
    empty = isGone ? empty + 1 : 0;
    if (empty === EMPTY_READS || clock.monotonic() > end) return isGone;
    await clock.sleep(READ_PAUSE_MS);
  }
}

/** True once the objects and their pods are gone. The budget goes last: it records until when the run lives. */
async function removeObjects(cluster: Cluster, { namespace, run }: Place): Promise<boolean> {
  const query = { namespace, labelSelector: `${LABEL}=${run}` };
  const zones = await collect(cluster.list(statefulSets, query));
  await Promise.all(zones.map(async (zone) => await removeOne(cluster, statefulSets, zone)));
  if (zones.length > 0 || (await collect(cluster.list(pods, query))).length > 0) return false;
  await removeLease(cluster, { namespace, run });
  const budgets = await collect(cluster.list(disruptionBudgets, query));
  await Promise.all(budgets.map(async (budget) => await removeOne(cluster, disruptionBudgets, budget)));
  return budgets.length === 0;
}

/** Removes the Lease of the group's downscales, which the reconciler leaves behind: its name comes from the group. */
async function removeLease(cluster: Cluster, { namespace, run }: Place): Promise<void> {
  const name = nameLease(run, "");
  const found = await cluster.get(leases, { namespace, name }).catch(absent);
  if (found) await removeOne(cluster, leases, found);
}

async function removeOne<T extends Marked>(cluster: Cluster, resource: Resource<T>, object: T): Promise<void> {
  const { namespace, name = "", uid = "", deletionTimestamp } = object.metadata ?? {};
  if (deletionTimestamp) return;
  const ref = namespace === undefined ? { name } : { namespace, name };
  await cluster.remove(resource, { ...ref, preconditions: { uid } }).catch((error: unknown) => {
    if (!hasCode(error, "NotFound", "Conflict")) throw error;
  });
}

/** The objects of a run, with the time from when on they may be removed, milliseconds since the epoch. */
export interface Leftover extends Place {
  readonly expires: number;
}

/** What runs have made in the namespace: the same label with another value belongs to somebody else. */
export async function findLeftovers({ cluster }: Caller, namespace: string): Promise<Leftover[]> {
  const query = { namespace, labelSelector: LABEL };
  const found: readonly Marked[] = [
    ...(await collect(cluster.list(statefulSets, query))),
    ...(await collect(cluster.list(disruptionBudgets, query))),
  ];
  const runs = Map.groupBy(found, ({ metadata }) => metadata?.labels?.[LABEL] ?? "");
  return [...runs]
    .filter(([run]) => isRunName(run))
    .map(([run, objects]) => ({
      run,
      namespace,
      expires: Math.max(...objects.map(({ metadata }) => expiryOf(metadata?.annotations))),
    }));
}
