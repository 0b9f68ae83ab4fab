/**
 * The pods of the groups that a tick resyncs, in lists that these groups share. Such a list shows only whether there is
 * anything to do: a group that is to be changed, or whose list has failed, reads its pods by itself (step-group.ts).
 */
import type { Source } from "../../infra/kubernetes/actor.ts";
import { groupBy } from "../model/order.ts";
import { refusedGroup } from "../model/refused-group.ts";
import type { GroupSnapshot, Zone } from "../model/zone.ts";
import { decideByStatus } from "../rollout/decide-rollout.ts";
import { gatherGroups } from "../snapshot/gather.ts";
import { namespaceOf } from "./steps.ts";

/** The most pods, of groups that share lists, that are in memory at a time. */
const MAX_SHARED = 2000;
/** The least number of pods that a tick resyncs, and the milliseconds in which ticks resync all pods that are due. */
const LEAST_OF_TICK = 2000;
const ALL_WITHIN_MS = 60_000;

/** A group by its key. */
interface KeyedGroup {
  readonly key: string;
  readonly group: readonly Zone[];
}

/** Resyncs one group. */
export interface GroupResync {
  /**
   * The group with its pods, of a list that begins with the first call for any of the groups that share it; undefined
   * if the list failed, or if the group shares none. Call it once. Never rejects.
   */
  readonly gather: () => Promise<GroupSnapshot | undefined>;
}

export interface ResyncOptions {
  /** True for a group, by its key, whose pods must be read even if its status shows that it is settled. */
  readonly isDue: (key: string) => boolean;
  /**
   * Milliseconds since the last tick began, 0 for the first: a tick resyncs groups with 2,000 pods, more if that would
   * not reach all pods within a minute, and at least one group. Absent if there may be no other tick: all that are due.
   */
  readonly sinceLastMs?: number | undefined;
}

/** For one tick over a queue of groups. */
interface Resyncs {
  /** Call it as the group is begun; undefined unless this tick resyncs it. */
  readonly begin: (key: string) => GroupResync | undefined;
}

/**
 * Groups that share a list are chosen when the first of them is begun, so that groups that cannot be begun take no
 * place from others. A group that reads its pods anyway takes no place.
 */
export function createResyncs(
  queue: readonly KeyedGroup[],
  { isDue, sinceLastMs }: ResyncOptions,
  source: Source,
): Resyncs {
  const groups = new Map(queue.map(({ key, group }) => [key, group]));
  const queues = groupBy(queue, ({ key }) => namespaceOf(key));
  const batches = new Map<string, Batch>();
  let left = sinceLastMs === undefined ? Infinity : Math.max(LEAST_OF_TICK, countShare(queue, sinceLastMs));
  let isFirst = true;

  /** For the group, and those of its namespace that follow it. */
  function openBatch(first: string): Batch | undefined {
    const own = queues.get(namespaceOf(first)) ?? [];
    const due = own
      .slice(own.findIndex(({ key }) => key === first))
      .filter(({ key, group }) => !batches.has(key) && isDue(key) && shares(group));
    const chosen = takeWithin(due, Math.min(left, MAX_SHARED), isFirst ? Infinity : left);
    if (chosen.length === 0) return undefined;
    isFirst = false;
    left -= countAll(chosen);
    const batch = { groups: chosen };
    for (const { key } of chosen) batches.set(key, batch);
    return batch;
  }

  return {
    begin(key) {
      const group = groups.get(key);
      if (!group || !isDue(key)) return undefined;
      if (!shares(group)) return { gather: async () => undefined };
      const batch = batches.get(key) ?? openBatch(key);
      return batch && { gather: () => takeFrom(batch, key, source) };
    },
  };
}

/** Groups that share lists; their pods, once they are asked for, until each group has taken its own. */
interface Batch {
  readonly groups: readonly KeyedGroup[];
  snapshots?: Promise<Map<string, GroupSnapshot>>;
}

async function takeFrom(batch: Batch, key: string, source: Source): Promise<GroupSnapshot | undefined> {
  batch.snapshots ??= readBatch(batch.groups, source).catch(() => new Map());
  const snapshots = await batch.snapshots;
  const snapshot = snapshots.get(key);
  snapshots.delete(key);
  return snapshot;
}

async function readBatch(groups: readonly KeyedGroup[], source: Source): Promise<Map<string, GroupSnapshot>> {
  const found = await gatherGroups(
    groups.map(({ group }) => group),
    source,
  );
  return new Map(found.flatMap((snapshot, i) => (groups[i] ? [[groups[i].key, snapshot]] : [])));
}

/** The first groups with at most so many pods; the first one alone may have `mostOfOne`. */
function takeWithin(groups: readonly KeyedGroup[], most: number, mostOfOne: number): readonly KeyedGroup[] {
  let count = 0;
  const end = groups.findIndex(({ group }, i) => (count += countPods(group)) > (i === 0 ? mostOfOne : most));
  return end < 0 ? groups : groups.slice(0, end);
}

/** The number of pods that ticks at this pace must resync to reach all of them in time. */
const countShare = (queue: readonly KeyedGroup[], sinceLastMs: number): number =>
  (countAll(queue) * sinceLastMs) / ALL_WITHIN_MS;

/** False for a group that reads its pods anyway, or never. */
const shares = (zones: readonly Zone[]): boolean =>
  decideByStatus(zones) !== "readPods" && refusedGroup({ zones }) === undefined;

const countAll = (groups: readonly KeyedGroup[]): number =>
  groups.reduce((sum, { group }) => sum + countPods(group), 0);

const countPods = (zones: readonly Zone[]): number =>
  zones.reduce((sum, { replicas, status }) => sum + Math.max(replicas, status.replicas), 0);
