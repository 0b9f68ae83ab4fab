/**
 * Reads the data of the status page. Each part of each namespace is read separately: one that cannot be read is
 * reported, and hides no other. A read of the last 2 s is shown again, so that many viewers cost as much as one.
 */
import type { Clock } from "../../infra/clock.ts";
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

interface GatherOptions {
  readonly cluster: Cluster;
  readonly now: () => number;
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
  readonly lease: { readonly namespace: string; readonly name: string };
  /** Name of the reconciler's CronJob beside it. */
  readonly cronJob: string;
}

/** The key of a group, to show it alone. */
export type Focus = string | undefined;

const READ_MS = 5000;
/** Limits of the groups and pods that are shown one by one; other groups show counts, and have pages of their own. */
const MAX_GROUPS = 20;
const MAX_PODS = 3000;
const AT_A_TIME = 4;
const MAX_DECISIONS = 30;

/** Milliseconds; the page asks at the same interval. */
const FRESH_MS = 2000;

interface Reading {
  readonly records: Promise<PageRecords>;
  /** Monotonic milliseconds; Infinity while it is under way. */
  endedAt: number;
}

/** Resolves with the records; never rejects. */
export function createReader(
  options: GatherOptions,
  clock: Pick<Clock, "monotonic">,
): (focus: Focus) => Promise<PageRecords> {
  const readings = new Map<Focus, Reading>();
  return async (focus) => {
    for (const [key, { endedAt }] of readings) if (clock.monotonic() - endedAt >= FRESH_MS) readings.delete(key);
    const found = readings.get(focus);
    if (found) return await found.records;
    const reading: Reading = { records: gatherRecords(options, focus), endedAt: Number.POSITIVE_INFINITY };
    readings.set(focus, reading);
    const records = await reading.records;
    reading.endedAt = clock.monotonic();
    return records;
  };
}

async function gatherRecords(options: GatherOptions, focus: Focus): Promise<PageRecords> {
  const problems: string[] = [];
  const part = readParts(problems);
  const each = eachNamespace(options.namespaces, part);
  const [reconciler, groups, budgets, decisions] = await Promise.all([
    part("the reconciler's Lease and totals", readReconciler(options)),
    each("the rollout groups", readGroups(options)),
    each("the disruption budgets", readBudgets(options)),
    each("the last decisions", readDecisions(options)),
  ]);
  const sorted = mapPart(groups.items, sortGroups);
  const zones = await each("pods", readPods(options, chooseGroups(listPart(sorted), focus)));
  return {
    readAt: options.now(),
    reconciler,
    groups: sorted,
    unread: groups.unread,
    zones: new Map(listPart(zones.items)),
    budgets: budgets.items,
    decisions: mapPart(decisions.items, chooseNewest),
    problems,
  };
}

type ReadPart = <T>(what: string, read: Promise<T>) => Promise<T | typeof UNREAD>;

/** Reads each part separately; `problems` gets a sentence for each part that cannot be read. */
function readParts(problems: string[]): ReadPart {
  return async (what, read) => {
    try {
      return await read;
    } catch (error) {
      problems.push(`${what} could not be read: ${messageOf(error)}`);
      return UNREAD;
    }
  };
}

interface EachNamespace<T> {
  readonly items: Part<T>;
  /** The namespaces of which nothing is known. */
  readonly unread: readonly string[];
}

type ReadNamespace<T> = (namespace: string) => Promise<readonly T[] | undefined>;

/** Reads a part namespace by namespace: one that may not be read, as one that is being deleted, hides no other. */
function eachNamespace(namespaces: readonly string[], part: ReadPart) {
  const nameIn = (what: string, namespace: string): string =>
    namespaces.length === 1 ? what : `${what} of namespace ${namespace}`;
  return async <T>(what: string, read: ReadNamespace<T>): Promise<EachNamespace<T>> => {
    const found = await Promise.all(
      namespaces.map(async (namespace): Promise<Part<T>> => await part(nameIn(what, namespace), read(namespace))),
    );
    const unread = namespaces.filter((_, i) => found[i] === UNREAD);
    if (unread.length === namespaces.length) return { items: UNREAD, unread };
    const isUndefined = found.every((items) => items === undefined);
    return { items: isUndefined ? undefined : found.flatMap(listPart), unread };
  };
}

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

/** The newest of all namespaces; a namespace's own stay in their order. */
const chooseNewest = (decisions: readonly DecisionRecord[]): readonly DecisionRecord[] =>
  decisions.toSorted((a, b) => (a.time === b.time ? 0 : a.time < b.time ? 1 : -1)).slice(0, MAX_DECISIONS);

const nameOf = ({ namespace = "", name = "" }: { readonly namespace?: string; readonly name?: string }) => ({
  namespace,
  name,
});

/** The zones of these groups, by the key of the group. */
const readPods =
  (options: GatherOptions, groups: readonly PageGroup[]): ReadNamespace<readonly [string, readonly LiveZone[]]> =>
  async (namespace) => {
    const own = groups.filter((group) => namespace === "" || group.namespace === namespace);
    const found: (readonly [string, readonly LiveZone[]])[] = [];
    await visitEach(own, { atOnce: AT_A_TIME }, async (group) => {
      found.push([keyOf(group), await readPodsOf(options, group)]);
    });
    return found;
  };

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
