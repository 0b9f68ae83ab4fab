/**
 * What budgets need of the tick: ready times on the pods that they select (§5.7), and an end to reservations that are over.
 * Only groups that are looked at closely get it, and those that owe a pod its ready time: a settled cluster costs a list of the budgets every 30 s,
 * and one of the StatefulSets of each that has a delay.
 */
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { hasCode } from "../../infra/errors.ts";
import type { Fence } from "../../infra/kubernetes/lease.ts";
import type { Log } from "../../infra/log.ts";
import { visitEach } from "../../infra/slots.ts";
import type { OnBudgets } from "../reservations/ask.ts";
import { livingReservations, readReservations } from "../budget/reservation.ts";
import { matchesLabels } from "../budget/selector.ts";
import type { Budget } from "../budget/zpdb.ts";
import { createFreshness } from "../freshness.ts";
import { listBudgets, type ListedBudget } from "../reservations/gather-budget.ts";
import { openLedger } from "../reservations/ledger.ts";
import type { ZoneList } from "../gather.ts";
import { selectorText, type GroupSnapshot, type Zone } from "../model/zone.ts";
import { writeReadyTimesOutsideGroups, writeReadyTimes } from "./ready-times.ts";

/** Keeps one group, with the pods that were read after the budgets; never rejects. */
export type Keep = (group: GroupSnapshot, fence: Fence) => Promise<void>;

/** Reads the budgets of a namespace, unless the tick has; before the pods of its groups, or a new reservation would seem to be over. Never rejects. */
export type TickUpkeep = (namespace: string) => Promise<Keep>;

export interface Upkeep {
  /** Begins a tick over these namespaces ("" for all). Every 30 s it reads the budgets, to know where delays make ready times matter. */
  readonly begin: (namespaces: readonly string[]) => Promise<TickUpkeep>;
  /** Keeps what no group of the tick does: pods under budgets with a delay, once for each time that `begin` reads them. Never rejects. */
  readonly keepOthers: (groups: ZoneList["groups"], fence: Fence, signal: AbortSignal) => Promise<void>;
  /** True if the group of these zones has to be looked at for the sake of ready times, even if its status says that there is nothing to do. */
  readonly owes: (zones: readonly Zone[]) => boolean;
}

export interface UpkeepOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly onBudgets: OnBudgets;
  /** Milliseconds that writing the ready time of one pod may take. */
  readonly patchTimeoutMs: number;
}

const READ_EVERY_MS = 30_000;
/** Anyone who may write budgets may write many: so many are looked at at once, and none is begun after this time, or the tick would wait for them. */
const OTHERS_AT_A_TIME = 8;
const BEGIN_OTHERS_FOR_MS = 5000;

export function createUpkeep({ cluster, clock, log, onBudgets, patchTimeoutMs }: UpkeepOptions): Upkeep {
  const writer = { cluster, clock, log, patchTimeoutMs };
  /** Groups with a pod that was not ready, or could not be given its ready time, when they were last looked at. */
  const owing = new Set<string>();
  /** Groups that have been looked at, and whether a budget selects any of their pods. */
  const looked = new Map<string, boolean>();
  /** Budgets with a delay as they were last read. */
  let delayed: readonly Budget[] = [];
  /** One of them for each selector whose pods outside of groups have not been looked at since, those first that have waited for longest. */
  const unkept = new Map<string, Budget>();
  let readAt = -Infinity;

  async function read(scope: string): Promise<readonly ListedBudget[]> {
    try {
      const budgets = await listBudgets(cluster, scope, createFreshness(clock, log));
      onBudgets(scope, budgets);
      return budgets ?? [];
    } catch (error) {
      log.warn("the disruption budgets could not be read", { error });
      return [];
    }
  }

  async function keep(budgets: readonly ListedBudget[], group: GroupSnapshot, fence: Fence): Promise<void> {
    const zones = group.zones.filter((zone) =>
      budgets.some(({ matchLabels }) => matchLabels && matchesLabels(matchLabels, zone.podLabels)),
    );
    const members = zones.flatMap((zone) => zone.pods);
    const key = keyOf(group);
    looked.set(key, zones.length > 0);
    if (members.every((pod) => pod.ready)) owing.delete(key);
    else owing.add(key);
    const written = writeReadyTimes(members, writer, fence).then((complete) => void (complete || owing.add(key)));
    await Promise.all([written, ...budgets.map((budget) => prune(budget, group, fence))]);
  }

  /** Removes what is over of the group's own pods; of others', what has expired. */
  async function prune({ object }: ListedBudget, group: GroupSnapshot, fence: Fence): Promise<void> {
    const all = readReservations(object.status?.disruptedPods);
    if (Object.keys(all).length === 0) return;
    const uids = new Map(group.zones.flatMap((zone) => zone.pods).map((pod) => [pod.name, pod.uid]));
    const isOurs = (pod: string): boolean => group.zones.some((zone) => pod.slice(0, pod.lastIndexOf("-")) === zone.name);
    const living = livingReservations(all, (pod) => (isOurs(pod) ? uids.get(pod) : all[pod]?.uid), clock.now());
    if (Object.keys(living).length === Object.keys(all).length) return;
    const ledger = await openLedger(cluster, object, false, {});
    await ledger.write(living, fence.write());
  }

  return {
    owes(zones) {
      const { namespace = "", group: name = "" } = zones[0] ?? {};
      const key = keyOf({ namespace, name });
      const covered = looked.get(key);
      if (covered === undefined) return delayed.some((budget) => budget.namespace === namespace);
      return owing.has(key) || (covered && zones.some(({ status }) => status.ready < status.replicas));
    },
    async keepOthers(groups, fence, signal) {
      const grouped = new Set([...groups.values()].flat().map(({ uid }) => uid));
      const startedAt = clock.monotonic();
      await visitEach(unkept, { atOnce: OTHERS_AT_A_TIME, signal }, async ([key, budget]) => {
        if (clock.monotonic() - startedAt >= BEGIN_OTHERS_FOR_MS) return;
        unkept.delete(key);
        await writeReadyTimesOutsideGroups(budget, grouped, writer, fence, signal);
      });
    },
    async begin(namespaces) {
      const lists = new Map<string, Promise<readonly ListedBudget[]>>();
      const readOnce = (scope: string): Promise<readonly ListedBudget[]> => {
        const list = lists.get(scope) ?? read(scope);
        lists.set(scope, list);
        return list;
      };
      if (clock.monotonic() - readAt >= READ_EVERY_MS) {
        readAt = clock.monotonic();
        delayed = (await Promise.all(namespaces.map(readOnce))).flat().flatMap(({ content }) => (hasDelay(content) ? [content] : []));
        const selectors = new Map(delayed.map((budget) => [`${budget.namespace} ${selectorText(budget)}`, budget]));
        for (const key of unkept.keys()) if (!selectors.has(key)) unkept.delete(key);
        for (const [key, budget] of selectors) unkept.set(key, budget);
      }
      return async (namespace) => {
        const list = await readOnce(namespaces.includes("") ? "" : namespace);
        const budgets = list.filter(({ ref }) => ref.namespace === namespace);
        return (group, fence) =>
          keep(budgets, group, fence).catch((error: unknown) => {
            // Others write to budgets, too; what is over does no harm.
            if (!hasCode(error, "Conflict")) log.warn("the disruption budgets could not be kept", { error });
          });
      };
    },
  };
}

const keyOf = ({ namespace, name }: Pick<GroupSnapshot, "namespace" | "name">): string => `${namespace}/${name}`;

const hasDelay = (content: ListedBudget["content"]): content is Budget => !("problem" in content) && content.crossZoneEvictionDelayMs > 0;
