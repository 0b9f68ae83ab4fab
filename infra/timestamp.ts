/** Timestamps in the format of Kubernetes and the original: RFC 3339. Pure. */

/**
 * Upper bound of the difference between two processes' times, in milliseconds: a second each, answers that take half a
 * second, and API servers whose clocks are 2 s apart. A period that one process starts and another waits for is
 * extended by this.
 */
export const CLOCK_SKEW_MS = 5000;

const RFC3339 =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/**
 * Milliseconds since the epoch of a strict RFC 3339 timestamp, fractions and offsets allowed; undefined if the text is
 * none (§0.9), as for 30 February.
 */
export function parseTimestamp(text: string): number | undefined {
  if (!RFC3339.test(text)) return undefined;
  // Date turns 30 February into 2 March. Every month has 28 days.
  const day = Number(text.slice(8, 10));
  if (day > 28 && new Date(`${text.slice(0, 10)}T00:00:00Z`).getUTCDate() !== day) return undefined;
  return Date.parse(text);
}

/** The first and the last millisecond of the years 0 and 9999, the only ones that RFC 3339 can write. */
const [FIRST, LAST] = [Date.UTC(-1, 12), Date.UTC(10_000, 0) - 1] as const;

/** The last second that a timestamp can name, in seconds since the epoch. */
export const LAST_SECOND = Math.floor(LAST / 1000);

/**
 * `2026-01-01T00:00:00Z`: RFC 3339 in UTC, to the second. A time before the year 0 or after 9999 becomes the nearest one
 * that can be written: what users write may add up to any time.
 */
export function formatTimestamp(ms: number): string {
  return `${new Date(Math.min(Math.max(ms, FIRST), LAST)).toISOString().slice(0, 19)}Z`;
}

/** `2026-01-01 00:00:00 +0000 UTC`: as Go prints it, as users search for the original's messages. */
export function formatGoTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} +0000 UTC`;
}

/** The first of these times; undefined without any. */
export function earliest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length > 0 ? Math.min(...known) : undefined;
}
