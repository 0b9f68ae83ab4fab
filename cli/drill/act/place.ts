/**
 * The place of a drill. A drill removes all its objects at the end.
 *
 *   made, expires in a minute --renewed every 15 s--> removed at the end, or after a Ctrl-C
 *                             --killed--> expired --the next run, or --clean--> removed
 */
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster, Ref } from "../../../infra/kubernetes/cluster.ts";
import { absent, hasCode, isTransient } from "../../../infra/errors.ts";
import { collect } from "../../../infra/kubernetes/collect.ts";
import { disruptionBudgets } from "../../../infra/kubernetes/custom-resources.ts";
import {
  leases,
  namespaces,
  pods,
  statefulSets,
  type ObjectMeta,
  type Resource,
} from "../../../infra/kubernetes/resources.ts";
import { nameLease } from "../../../reconciler/downscale/act/downscale-lease.ts";
import { expiryOf, isRunName, LABEL, marks, RENEWAL_MS, type Run } from "../plan.ts";

export interface Caller {
  readonly cluster: Cluster;
  readonly clock: Clock;
}

/** The objects of a run: a namespace, or objects in an existing namespace. */
export interface Place {
  readonly run: string;
  readonly namespace: string;
  /** The drill has made the namespace. */
  readonly isOwn: boolean;
}

interface Marked {
  readonly metadata?: ObjectMeta;
}

/** The object that records until when the run lives: its namespace, or its budget. */
const anchorOf = ({ run, namespace, isOwn }: Place): readonly [Resource, Ref] =>
  isOwn ? [namespaces, { name: namespace }] : [disruptionBudgets, { namespace, name: run }];

export async function makeNamespace({ cluster, clock }: Caller, { name }: Run): Promise<void> {
  const metadata = { name, ...marks(name, clock.now()) };
  const body = { apiVersion: "v1", kind: "Namespace", metadata };
  await cluster.create(namespaces, { body });
}

/** Renews the expiry until the signal fires. Never rejects: a lost renewal is followed by others. */
export async function renew({ cluster, clock }: Caller, place: Place, signal: AbortSignal): Promise<void> {
  const [resource, ref] = anchorOf(place);
  for (;;) {
    await clock.sleep(RENEWAL_MS, signal);
    if (signal.aborted) return;
    const { annotations } = marks(place.run, clock.now());
    await cluster
      .patch(resource, { ...ref, type: "merge", body: { metadata: { annotations } } }, { signal })
      .catch(() => "");
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
    const isGone = await (place.isOwn ? removeNamespace : removeObjects)(cluster, place).catch((error: unknown) => {
      if (!isTransient(error)) throw error;
      return false;
    });
    empty = isGone ? empty + 1 : 0;
    if (empty === EMPTY_READS || clock.monotonic() > end) return isGone;
    await clock.sleep(READ_PAUSE_MS);
  }
}

/**
 * A namespace that a run has made has the name of the run, also in its label: any other namespace belongs to somebody
 * else.
 */
const isMade = ({ metadata = {} }: Marked): boolean =>
  isRunName(metadata.name ?? "") && metadata.labels?.[LABEL] === metadata.name;

async function removeNamespace(cluster: Cluster, { namespace: name }: Place): Promise<boolean> {
  const found = await cluster.get(namespaces, { name }).catch(absent);
  if (!found || !isMade(found)) return true;
  await removeOne(cluster, namespaces, found);
  return false;
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
async function removeLease(cluster: Cluster, { namespace, run }: Omit<Place, "isOwn">): Promise<void> {
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
interface Leftover extends Place {
  readonly expires: number;
}

/** Namespaces that runs have made; with a namespace given, the objects of runs in it. */
export async function findLeftovers({ cluster }: Caller, namespace: string | undefined): Promise<Leftover[]> {
  const isOwn = namespace === undefined;
  const query = isOwn ? { labelSelector: LABEL } : { namespace, labelSelector: LABEL };
  const found: readonly Marked[] = isOwn
    ? (await collect(cluster.list(namespaces, query))).filter(isMade)
    : [
        ...(await collect(cluster.list(statefulSets, query))),
        ...(await collect(cluster.list(disruptionBudgets, query))),
      ];
  const runs = Map.groupBy(found, ({ metadata }) => metadata?.labels?.[LABEL] ?? "");
  return [...runs].map(([run, objects]) => ({
    run,
    namespace: namespace ?? objects[0]?.metadata?.name ?? "",
    isOwn,
    expires: Math.max(...objects.map(({ metadata }) => expiryOf(metadata?.annotations))),
  }));
}
