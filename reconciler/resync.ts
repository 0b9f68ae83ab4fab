/**
 * Every group is resynced at least every 5 minutes: its pods are read even if its status shows that it is settled. Each group has its own moment
 * within the 5 minutes, so that resyncs spread. Annotations of the Lease keep the progress across processes.
 */
import { hash } from "./model/hash.ts";

const PERIOD_MS = 5 * 60_000;

/** Annotations of the Lease. If ticks are cut short, one cycle of resyncs takes several: it began at `since`, after the group `from`. */
const ANNOTATIONS = { through: "zonewise/resynced-through", since: "zonewise/resync-since", from: "zonewise/resync-from" } as const;

type LeaseAnnotations = Map<string, string>;

/** The time up to which every group that was due has been resynced, milliseconds since the epoch; undefined if it is unknown. */
export function resyncedThrough(annotations: LeaseAnnotations): number | undefined {
  const written = annotations.get(ANNOTATIONS.through);
  return written === undefined ? undefined : Date.parse(written);
}

/** The progress of one tick, which starts its groups in the order of their keys. */
export interface TickProgress {
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** The group that was started last before this tick. */
  readonly after: string;
  readonly groups: readonly string[];
  /** How many of them were started. */
  readonly begun: number;
}

/** Records the resyncs of a tick: they count from the start of their cycle once every group has been started. */
export function recordResync(annotations: LeaseAnnotations, { startedAt, after, groups, begun }: TickProgress): void {
  const tickAt = new Date(startedAt).toISOString();
  const open = openCycle(annotations);
  const { since, from } = open ?? { since: tickAt, from: after };
  const isOver = begun >= groups.filter((key) => isBetween(key, after, from)).length;
  if (isOver) annotations.set(ANNOTATIONS.through, begun === groups.length ? tickAt : since);
  if (isOver && !open) return;
  // Annotations are merged: a key that is left out would remain.
  annotations.set(ANNOTATIONS.since, isOver ? "" : since);
  annotations.set(ANNOTATIONS.from, isOver ? "" : from);
}

/** The cycle that an earlier tick began and did not end, if any. */
function openCycle(annotations: LeaseAnnotations): { readonly since: string; readonly from: string } | undefined {
  const since = annotations.get(ANNOTATIONS.since);
  return since ? { since, from: annotations.get(ANNOTATIONS.from) ?? "" } : undefined;
}

/** True if the group comes after `after` and not after `last` in the circular order of keys. */
function isBetween(key: string, after: string, last: string): boolean {
  return after < last ? key > after && key <= last : key > after || key <= last;
}

/** True for the groups whose moment lies between `through` and `now` (milliseconds since the epoch), and for all if that is a period or more. */
export function dueForResync(through: number | undefined, now: number): (key: string) => boolean {
  if (through === undefined || now - through >= PERIOD_MS || now < through) return () => true;
  return (key) => {
    const moment = hash(key) % PERIOD_MS;
    const latest = now - ((((now - moment) % PERIOD_MS) + PERIOD_MS) % PERIOD_MS);
    return latest > through;
  };
}
