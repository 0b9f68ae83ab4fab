/**
 * Reads the data of the status page. Each part of each namespace is read separately: one that cannot be read is
 * reported, and shown as it was read before.
 */
import { absent, messageOf } from "../../infra/errors.ts";
import type { Cluster, Query } from "../../infra/kubernetes/cluster.ts";
import { collectRead } from "../../infra/kubernetes/collect.ts";
import {
  type DisruptionBudget,
  disruptionBudgets,
  type RolloutGroup,
  rolloutGroups,
} from "../../infra/kubernetes/custom-resources.ts";
import {
  type Event,
  events,
  leases,
  type Lease,
  type PodObject,
  pods,
  statefulSets,
} from "../../infra/kubernetes/resources.ts";
import { METRICS } from "../../infra/metrics/tables/metric-table.ts";
import { parseTotals, TOTALS } from "../../infra/metrics/totals.ts";
import { visitEach } from "../../infra/slots.ts";
import type { Protection } from "../../reconciler/budget/protection.ts";
import { readTicking } from "../../reconciler/report/act/read-ticking.ts";
import { readPod } from "../../reconciler/model/pod.ts";
import { byTime, type EventTimes, lastSeen, timesOf } from "../../reconciler/report/events.ts";
import { readReservations } from "../../reconciler/budget/reservation.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { selectorText } from "../../reconciler/model/label-selector.ts";
import { byOrdinal } from "../../reconciler/model/order.ts";
import { readZone } from "../../reconciler/model/zone.ts";
import {
  type BudgetRecord,
  type DecisionRecord,
  isQuiet,
  keyOf,
  listPart,
  type LivePod,
  type LiveZone,
  type PageGroup,
  type PageRecords,
  type Part,
  type ReconcilerRecord,
  sortGroups,
  UNREAD,
} from "./view/records.ts";

export interface GatherOptions {
  readonly cluster: Cluster;
  readonly now: () => number;
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
  /** The reconciler's Lease. */
  readonly lease: { readonly namespace: string; readonly name: string };
  /** Name of the reconciler's CronJob beside it. */
  readonly cronJob: string;
}

/** The key of a group, to show it alone. */
export type Focus = string | undefined;

/** Timeout of each list, milliseconds. */
const READ_MS = 5000;
/** Limits of the groups and pods that are shown one by one; other groups show counts, and have pages of their own. */
const MAX_GROUPS = 20;
const MAX_PODS = 3000;
const AT_A_TIME = 4;
const MAX_DECISIONS = 30;

/** Never rejects. `earlier` holds the records of the last read, for parts that cannot be read now. */
export async function gatherRecords(options: GatherOptions, focus: Focus, earlier: PageRecords): Promise<PageRecords> {
  const problems: string[] = [];
  const part = readParts(problems);
  const each = eachNamespace(options.namespaces, part);
  const [reconciler, groups, budgets, decisions] = await Promise.all([
    part("the reconciler's Lease and totals", readReconciler(options), earlier.reconciler),
    each("the rollout groups", readGroups(options), { items: earlier.groups, namespaceOf }),
    each("the disruption budgets", readBudgets(options), { items: earlier.budgets, namespaceOf }),
    each("the last decisions", readDecisions(options), { items: earlier.decisions, namespaceOf }),
  ]);
  const sorted = mapPart(groups.items, sortGroups);
  const chosen = chooseGroups(listPart(sorted), focus);
  const zones = await readPods(options, chosen, { part, earlier: earlier.zones });
  return {
    readAt: options.now(),
    reconciler,
    groups: sorted,
    unread: groups.unread,
    zones,
    budgets: budgets.items,
    decisions: mapPart(decisions.items, chooseNewest),
    problems,
  };
}

/** Resolves with the result of `read`; if that fails, with `before`, and reports a problem. */
type ReadPart = <T>(what: string, read: Promise<T>, before: T) => Promise<T>;

/** Reads each part separately; `problems` gets a sentence for each part that cannot be read. */
function readParts(problems: string[]): ReadPart {
  return async (what, read, before) => {
    try {
      return await read;
    } catch (error) {
      const shown = before === UNREAD ? "" : ", and are shown as they were read last";
      problems.push(`${what} could not be read${shown}: ${messageOf(error)}`);
      return before;
    }
  };
}

interface EachNamespace<T> {
  readonly items: Part<T>;
  /** The namespaces of which nothing is known. */
  readonly unread: readonly string[];
}

type ReadNamespace<T> = (namespace: string) => Promise<readonly T[] | undefined>;

/** What was read before. */
interface Earlier<T> {
  readonly items: Part<T>;
  readonly namespaceOf: (item: T) => string;
}

const namespaceOf = ({ namespace }: { readonly namespace: string }): string => namespace;

/** Reads a part namespace by namespace: one that may not be read, as one that is being deleted, hides no other. */
function eachNamespace(namespaces: readonly string[], part: ReadPart) {
  return async <T>(what: string, read: ReadNamespace<T>, earlier: Earlier<T>): Promise<EachNamespace<T>> => {
    const found = await Promise.all(
      namespaces.map(async (namespace) => ({
        namespace,
        items: await part<Part<T>>(nameIn(namespaces, what, namespace), read(namespace), pick(earlier, namespace)),
      })),
    );
    const unread = found.filter(({ items }) => items === UNREAD).map(({ namespace }) => namespace);
    if (unread.length === namespaces.length) return { items: UNREAD, unread };
    const isUndefined = found.every(({ items }) => items === undefined);
    return { items: isUndefined ? undefined : found.flatMap(({ items }) => listPart(items)), unread };
  };

  function pick<T>({ items, namespaceOf }: Earlier<T>, namespace: string): Part<T> {
    if (namespaces.length === 1 || items === UNREAD || items === undefined) return items;
    const own = items.filter((item) => namespaceOf(item) === namespace);
    return own.length > 0 ? own : UNREAD;
  }
}

const nameIn = (namespaces: readonly string[], what: string, namespace: string): string =>
  namespaces.length === 1 ? what : `${what} of namespace ${namespace}`;

const mapPart = <T>(part: Part<T>, map: (items: readonly T[]) => readonly T[]): Part<T> =>
  part === UNREAD || part === undefined ? part : map(part);

/** Their lists are read with it: what is shown is kept, not the objects, which may be large. */
const READ = { deadlineMs: READ_MS };

const inNamespace = (namespace: string): Query => (namespace === "" ? {} : { namespace });

/** The reconciler of one installation: by its Lease, and by its CronJob if the Lease records no tick. */
async function readReconciler({ cluster, lease, cronJob, now }: GatherOptions): Promise<ReconcilerRecord> {
  const call = { deadlineMs: READ_MS };
  const found = await cluster.get(leases, lease, call).catch(absent);
  const { namespace, name } = lease;
  const installation = { namespace, lease: name, cronJob };
  const noTick = await readTicking({ cluster, installation, served: namespace, now, call, lease: found });
  return { ...(found && describeLease(found)), ...(noTick && { noTick }) };
}

/** The record of the reconciler in its Lease. */
function describeLease({ metadata, spec }: Lease): ReconcilerRecord {
  const { lastTick, series } = parseTotals(metadata?.annotations?.[TOTALS]);
  const [expiry] = series.get(METRICS.certificateExpiry.name) ?? [];
  return {
    ...(spec?.holderIdentity && { holder: spec.holderIdentity }),
    ...(lastTick !== undefined && { lastTick }),
    ...(expiry && { certificateExpiry: expiry.value * 1000 }),
  };
}

const readGroups =
  ({ cluster }: GatherOptions): ReadNamespace<PageGroup> =>
  async (namespace) => {
    const read = ({ metadata, status }: RolloutGroup): PageGroup => ({ ...nameOf(metadata), status: status ?? {} });
    return await collectRead(cluster.list(rolloutGroups, inNamespace(namespace), READ), read).catch(absent);
  };

const readBudgets =
  ({ cluster }: GatherOptions): ReadNamespace<BudgetRecord> =>
  async (namespace) => {
    const read = ({ metadata, status = {} }: DisruptionBudget): BudgetRecord => ({
      ...nameOf(metadata),
      protection: status as Partial<Protection>,
      reservations: readReservations(status.disruptedPods),
    });
    return await collectRead(cluster.list(disruptionBudgets, inNamespace(namespace), READ), read).catch(absent);
  };

const readDecisions =
  ({ cluster }: GatherOptions): ReadNamespace<DecisionRecord> =>
  async (namespace) => {
    const query = { ...inNamespace(namespace), fieldSelector: "reportingComponent=zonewise" };
    const read = (event: Event): readonly [EventTimes, DecisionRecord] => [timesOf(event), readDecision(event)];
    const found = await collectRead(cluster.list(events, query, READ), read);
    const newest = found.toSorted(([a], [b]) => byTime(b, a)).slice(0, MAX_DECISIONS);
    return newest.map(([, decision]) => decision);
  };

const readDecision = (event: Event): DecisionRecord => ({
  namespace: event.metadata.namespace ?? "",
  object: `${event.involvedObject.kind ?? ""} ${event.metadata.namespace ?? ""}/${event.involvedObject.name ?? ""}`,
  type: event.type ?? "",
  reason: event.reason ?? "",
  message: event.message ?? "",
  count: event.count ?? 1,
  time: lastSeen(event),
});

/** The newest of all namespaces; those of one namespace stay in their order. */
const chooseNewest = (decisions: readonly DecisionRecord[]): readonly DecisionRecord[] =>
  decisions.toSorted((a, b) => (a.time === b.time ? 0 : a.time < b.time ? 1 : -1)).slice(0, MAX_DECISIONS);

const nameOf = ({ namespace = "", name = "" }: { readonly namespace?: string; readonly name?: string }) => ({
  namespace,
  name,
});

async function readPods(
  options: GatherOptions,
  groups: readonly PageGroup[],
  { part, earlier }: { readonly part: ReadPart; readonly earlier: PageRecords["zones"] },
): Promise<PageRecords["zones"]> {
  const { namespaces } = options;
  const all = new Map<string, readonly LiveZone[]>();
  for (const namespace of namespaces) {
    const own = groups.filter((group) => namespace === "" || group.namespace === namespace);
    const keys = new Set(own.map(keyOf));
    const before = new Map([...earlier].filter(([key]) => keys.has(key)));
    for (const [key, zones] of await part(nameIn(namespaces, "pods", namespace), readPodsOfAll(options, own), before))
      all.set(key, zones);
  }
  return all;
}

async function readPodsOfAll(options: GatherOptions, groups: readonly PageGroup[]): Promise<PageRecords["zones"]> {
  const found = new Map<string, readonly LiveZone[]>();
  await visitEach(groups, { atOnce: AT_A_TIME }, async (group) => {
    found.set(keyOf(group), await readPodsOf(options, group));
  });
  return found;
}

/** The group that is shown alone; otherwise the first groups that are not done and whose pods fit into `MAX_PODS`. */
function chooseGroups(groups: readonly PageGroup[], focus: Focus): PageGroup[] {
  if (focus !== undefined) return groups.filter((group) => keyOf(group) === focus);
  let left = MAX_PODS;
  return groups
    .filter((group) => !isQuiet(group))
    .slice(0, MAX_GROUPS)
    .filter(({ status: { zones = [] } }) => {
      const count = zones.reduce((sum, zone) => sum + Math.max(zone.pods, zone.replicas), 0);
      if (count > left) return false;
      left -= count;
      return true;
    });
}

/** Runtimes write the default registry out: `docker.io/library/nginx:1.29` is the template's `nginx:1.29`. */
const DEFAULT_REGISTRY = /^docker\.io\/(?:library\/)?/;

function readLivePod(object: PodObject): LivePod {
  const images = object.status?.containerStatuses?.flatMap(({ image }) => image?.replace(DEFAULT_REGISTRY, "") ?? []);
  return { ...readPod(object), images: [...new Set(images)] };
}

async function readPodsOf({ cluster }: GatherOptions, { namespace, name, status }: PageGroup): Promise<LiveZone[]> {
  const query = { namespace, labelSelector: `${LABELS.rolloutGroup}=${status.group ?? name}` };
  const zones = await collectRead(cluster.list(statefulSets, query, READ), readZone);
  return await Promise.all(
    zones.map(async (zone) => {
      const selected = cluster.list(pods, { namespace, labelSelector: selectorText(zone.selector) }, READ);
      const own = (await collectRead(selected, readLivePod)).filter(({ owner }) => owner === zone.uid);
      return { ...zone, pods: own.toSorted(byOrdinal) };
    }),
  );
}
