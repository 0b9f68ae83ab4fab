/** How long a node waits after failed attempts: more than 2^count minutes, at most a day (§17.7). */
const MINUTE_MS = 60_000;
const MAX_MINUTES = 1440;
/** 2^11 minutes exceed a day. */
const LARGEST_EXPONENT = 11;

/**
 * True if an attempt is allowed `sinceMs` milliseconds after the last of `count` failures. Whole minutes count. A
 * negative time is that of a clock that runs ahead; one of more than `longestMinutes` says nothing.
 */
export function isBackOffOver(sinceMs: number, count: number, longestMinutes = MAX_MINUTES): boolean {
  const minutes = Math.trunc(sinceMs / MINUTE_MS);
  return Math.abs(minutes) > longestMinutes || minutes > 2 ** Math.min(count, LARGEST_EXPONENT);
}
