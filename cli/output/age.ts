/** Times as people read them. */
import { shortDuration } from "../../infra/duration.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";

/** `4m30s`: how long ago `at` (RFC 3339) was; "" if it is none. */
export function formatAge(at: string | undefined, now: number): string {
  const ms = parseTimestamp(at ?? "");
  return ms === undefined ? "" : shortDuration(now - ms);
}

/** Milliseconds that something may be late: a run begins every minute. */
const DUE_MS = 60_000;

/** `in 4m30s`, or `now` once it is due; "" if it is none, or so long over that nobody knows when. */
export function untilOf(at: string | undefined, now: number): string {
  const ms = parseTimestamp(at ?? "");
  if (ms === undefined || now - ms > DUE_MS) return "";
  return ms > now ? `in ${shortDuration(ms - now)}` : "now";
}
