/** When the store was written, as what a process reads may be some writes old; and since when something is so. */

/** How old what is read may be, in writes. */
const STALE_WRITES = 30;
/** So many are kept, or up to twice as many. */
const MAX_WRITES = 5000;

/** With `mayBeStale` what is read may be so many writes old; otherwise it is as it is stored. */
export function createPast(now: () => number, mayBeStale = true) {
  /** When each write was stored, the latest last. */
  const writtenAt: number[] = [];
  return {
    noteWrite(): void {
      if (writtenAt.push(now()) > 2 * MAX_WRITES) writtenAt.splice(0, MAX_WRITES);
    },
    /** Who read at this time has seen what was stored before the time that this returns, however old its read was. */
    seenAt: (at: number): number =>
      mayBeStale ? (writtenAt[writtenAt.findLastIndex((one) => one < at) - STALE_WRITES] ?? -Infinity) : at,
  };
}

/** Since when what has been so. */
export function createSince(now: () => number) {
  const times = new Map<string, number>();
  return {
    /** It is so, or no longer; for the first time now, or since `at`. */
    note(what: string, holds: boolean, at = now()): void {
      if (!holds) times.delete(what);
      else if (!times.has(what)) times.set(what, at);
    },
    /** True if it has been so since before that time. */
    before: (what: string, at: number): boolean => (times.get(what) ?? Infinity) < at,
    /** All that is so, and since when. */
    all: times as ReadonlyMap<string, number>,
  };
}
