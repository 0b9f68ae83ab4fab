/**
 * Every group is resynced at least every 5 minutes: its pods are read even if its status shows that it is settled. Each
 * group has its own moment within the 5 minutes, so that resyncs spread. Annotations of the Lease keep the progress
 * across processes: one time for each 64th of the order in which groups take turns, so that a run that does not reach
 * every group still keeps what it has done.
 */
import { hash, spreadHash } from "../model/hash.ts";

const PERIOD_MS = 5 * 60_000;
/** Groups whose moments lie within one slot get the same moment, so that they share lists of pods. */
const SLOT_MS = PERIOD_MS / 15;
const SECTORS = 64;

/**
 * Annotations of the Lease: the earliest of the times, and all of them if they differ, in milliseconds to the base of
 * 36 ("" if unknown).
 */
const ANNOTATIONS = { through: "zonewise/resynced-through", sectors: "zonewise/resynced-sectors" } as const;

type LeaseAnnotations = Map<string, string>;

export interface Resync {
  /** True if a resync of the group, by its key, is due at `now` (milliseconds since the epoch). */
  readonly isDue: (key: string, now: number) => boolean;
  /** Notes that a step has begun which reads the pods of the group, in a tick that started at `now`. */
  readonly begin: (key: string, now: number) => void;
  /** Milliseconds since the last tick that ended had started; 0 if there was none. */
  readonly sinceLastMs: (now: number) => number;
  /**
   * Records the progress of a tick over these groups: a 64th whose groups were all begun, if they were due, counts as
   * resynced when the tick started.
   */
  readonly endTick: (keys: readonly string[], startedAt: number) => void;
}

/** For the ticks under one Lease. */
export function createResync(annotations: LeaseAnnotations): Resync {
  const through = readSectors(annotations);
  const begun = new Map<string, number>();
  let lastAt: number | undefined;
  const isDue = (key: string, now: number): boolean => {
    const since = later(through[sectorOf(key)], begun.get(key));
    return dueForResync(since, now)(key);
  };
  return {
    isDue,
    begin: (key, now) => void begun.set(key, now),
    sinceLastMs: (now) => now - (lastAt ?? now),
    endTick(keys, startedAt) {
      lastAt = startedAt;
      const owed = new Set(keys.filter((key) => isDue(key, startedAt)).map(sectorOf));
      for (let sector = 0; sector < SECTORS; sector++) if (!owed.has(sector)) through[sector] = startedAt;
      for (const key of begun.keys()) if (!owed.has(sectorOf(key))) begun.delete(key);
      writeSectors(annotations, through);
    },
  };
}

/** Neighbours in the order of turns are in one sector. */
const sectorOf = (key: string): number => Math.floor(spreadHash(key) / (2 ** 32 / SECTORS));

const later = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);

/**
 * The time up to which every group that was due has been resynced, milliseconds since the epoch; undefined if it is
 * unknown.
 */
export function resyncedThrough(annotations: LeaseAnnotations): number | undefined {
  return numberOf(Date.parse(annotations.get(ANNOTATIONS.through) ?? ""));
}

const numberOf = (value: number): number | undefined => (Number.isFinite(value) ? value : undefined);

function readSectors(annotations: LeaseAnnotations): (number | undefined)[] {
  const sectors = (annotations.get(ANNOTATIONS.sectors) ?? "")
    .split(" ")
    .map((text) => numberOf(parseInt(text.slice(1), 36)));
  const all = resyncedThrough(annotations);
  return sectors.length === SECTORS ? sectors : Array.from({ length: SECTORS }, () => all);
}

function writeSectors(annotations: LeaseAnnotations, through: readonly (number | undefined)[]): void {
  const known = through.filter((time) => time !== undefined);
  const isKnown = known.length === SECTORS;
  const isOne = isKnown && new Set(known).size === 1;
  if (isKnown) annotations.set(ANNOTATIONS.through, new Date(Math.min(...known)).toISOString());
  // Annotations are merged: a key that is left out would remain.
  annotations.set(ANNOTATIONS.sectors, isOne ? "" : through.map((time) => `t${time?.toString(36) ?? ""}`).join(" "));
}

/**
 * True for the groups whose moment lies between `through` and `now` (milliseconds since the epoch), and for all if that
 * is a period or more.
 */
export function dueForResync(through: number | undefined, now: number): (key: string) => boolean {
  if (through === undefined || now - through >= PERIOD_MS || now < through) return () => true;
  return (key) => {
    const position = hash(key) % PERIOD_MS;
    const moment = position - (position % SLOT_MS);
    const latest = now - ((((now - moment) % PERIOD_MS) + PERIOD_MS) % PERIOD_MS);
    return latest > through;
  };
}
