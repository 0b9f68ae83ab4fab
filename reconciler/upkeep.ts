/**
 * What budgets need of the tick: ready times on the pods that they select [5.7], and an end to reservations that are over.
 * Only groups that are looked at closely get it, and those that owe a pod its ready time: a settled cluster costs nothing.
 */
import type { Clock } from "../infra/clock.ts";
import type { Cluster } from "../infra/cluster.ts";
import { hasCode } from "../infra/errors.ts";
import type { Fence } from "../infra/lease.ts";
import type { Log } from "../infra/log.ts";
import { pods } from "../infra/resources.ts";
import { visitEach } from "../infra/slots.ts";
import type { OnBudgets } from "./ask.ts";
import { changeReadyTimes, type ReadyTimeChange } from "./budget/ready-time.ts";
import { livingReservations, readReservations } from "./budget/reservation.ts";
import { matchesLabels } from "./budget/selector.ts";
import { listBudgets, type ListedBudget } from "./gather-budget.ts";
import { openLedger } from "./ledger.ts";
import { ANNOTATIONS } from "./model/annotations.ts";
import type { GroupSnapshot, Zone } from "./model/zone.ts";

/** Keeps one group, with the pods that were read after the budgets; never rejects. */
export type Keep = (group: GroupSnapshot, fence: Fence) => Promise<void>;

/** Reads the budgets of a namespace, unless the tick has; before the pods of its groups, or a new reservation would seem to be over. Never rejects. */
export type TickUpkeep = (namespace: string) => Promise<Keep>;

export interface Upkeep {
  /** Begins a tick over these namespaces ("" for all). The first of the process reads the budgets, to know where delays make ready times matter. */
  readonly begin: (namespaces: readonly string[]) => Promise<TickUpkeep>;
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

const PATCHES_AT_A_TIME = 8;

export function createUpkeep({ cluster, clock, log, onBudgets, patchTimeoutMs }: UpkeepOptions): Upkeep {
  /** Groups with a pod that was not ready, or could not be given its ready time, when they were last looked at. */
  const owing = new Set<string>();
  /** Groups that have been looked at, and whether a budget selects any of their pods. */
  const looked = new Map<string, boolean>();
  let delayed: ReadonlySet<string> | undefined;

  async function read(scope: string): Promise<readonly ListedBudget[]> {
    try {
      const budgets = await listBudgets(cluster, scope, new Map());
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
    const changes = changeReadyTimes(members, clock.now());
    const written = visitEach(changes, { atOnce: PATCHES_AT_A_TIME }, (change) => writeReadyTime(change, key, fence));
    await Promise.all([written, ...budgets.map((budget) => prune(budget, group, fence))]);
  }

  async function writeReadyTime({ pod, value }: ReadyTimeChange, key: string, fence: Fence): Promise<void> {
    const body = { metadata: { uid: pod.uid, annotations: { [ANNOTATIONS.readyTime]: value } } };
    const call = fence.write();
    const deadlineMs = Math.min(patchTimeoutMs, call.deadlineMs ?? patchTimeoutMs);
    await cluster.patch(pods, pod, "merge", body, { ...call, deadlineMs }).catch((error: unknown) => {
      owing.add(key);
      // A pod of another uid is no conflict to the API server: its patch is Invalid, as nobody may change a uid.
      if (!hasCode(error, "NotFound", "Conflict", "Invalid"))
        log.warn("the ready time of a pod could not be written", { pod: pod.name, error });
    });
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
      if (covered === undefined) return delayed?.has(namespace) === true;
      return owing.has(key) || (covered && zones.some(({ status }) => status.ready < status.replicas));
    },
    async begin(namespaces) {
      const lists = new Map<string, Promise<readonly ListedBudget[]>>();
      const readOnce = (scope: string): Promise<readonly ListedBudget[]> => {
        const list = lists.get(scope) ?? read(scope);
        lists.set(scope, list);
        return list;
      };
      delayed ??= new Set(
        (await Promise.all(namespaces.map(readOnce)))
          .flat()
          .filter(hasDelay)
          .map(({ ref }) => ref.namespace),
      );
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

const hasDelay = ({ content }: ListedBudget): boolean => !("problem" in content) && content.crossZoneEvictionDelayMs > 0;
