/** Describes waiting times. */
import { shortDuration } from "../../infra/duration.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";

/**
 * `2h10m ago, 9h50m left of 12h`: a wait of `ms` that began at `since`, all in milliseconds. If `since` is in the
 * future, it is named.
 */
export function describeWait(since: number, ms: number, now: number): string {
  if (since > now) return `at ${formatTimestamp(since)}, which is in the future, and ${shortDuration(ms)} are needed`;
  return `${shortDuration(now - since)} ago, ${shortDuration(ms - (now - since))} left of ${shortDuration(ms)}`;
}
