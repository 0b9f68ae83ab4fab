/** Since when something is so. */

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
