/** Times as people read them. */
import { shortDuration } from "../../infra/duration.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";

/** `4m30s`: how long ago `at` (RFC 3339) was; "" if it is none. */
export function formatAge(at: string | undefined, now: number): string {
  const ms = parseTimestamp(at ?? "");
  return ms === undefined ? "" : shortDuration(now - ms);
}

/** `in 4m30s`, or `now` once it is over; "" if it is none. */
export function untilOf(at: string | undefined, now: number): string {
  const ms = parseTimestamp(at ?? "");
  if (ms === undefined) return "";
  return ms > now ? `in ${shortDuration(ms - now)}` : "now";
}
