/** Times as people read them. */
import { shortDuration } from "../../infra/duration.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";

/** `4m30s`: the time since `at` (RFC 3339); "" if `at` is no time. */
export function formatAge(at: string | undefined, now: number): string {
  const ms = parseTimestamp(at ?? "");
  return ms === undefined ? "" : shortDuration(now - ms);
}

/** Milliseconds that a due action may be late: a run begins every minute. */
const DUE_MS = 60_000;

/** `in 4m30s`, or `now` once it is due; "" if `at` is no time, or is overdue by more than `DUE_MS`. */
export function untilOf(at: string | undefined, now: number): string {
  const ms = parseTimestamp(at ?? "");
  if (ms === undefined || now - ms > DUE_MS) return "";
  return ms > now ? `in ${shortDuration(ms - now)}` : "now";
}
