/** The times of Events, and their order. Pure. */
import type { Event } from "../../infra/kubernetes/resources.ts";

/** When it was seen last, RFC 3339; "" if it does not say. */
export const lastSeen = ({ lastTimestamp, firstTimestamp }: Event): string => lastTimestamp ?? firstTimestamp ?? "";

/** The oldest first. Times have a resolution of a second: within it, in the order in which Events were written. */
export function byTime(a: Event, b: Event): number {
  const [one, other] = [lastSeen(a), lastSeen(b)];
  if (one !== other) return one < other ? -1 : 1;
  return Number(a.metadata.resourceVersion ?? 0) - Number(b.metadata.resourceVersion ?? 0);
}
