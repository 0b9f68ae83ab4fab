/** The times of Events, and their order. Pure. */
import type { Event } from "../../infra/kubernetes/resources.ts";

/** What the order of Events depends on. */
export type EventTimes = Pick<Event, "lastTimestamp" | "firstTimestamp"> & {
  readonly metadata: Pick<Event["metadata"], "resourceVersion">;
};

export const timesOf = ({ lastTimestamp, firstTimestamp, metadata: { resourceVersion } }: Event): EventTimes => ({
  ...(lastTimestamp !== undefined && { lastTimestamp }),
  ...(firstTimestamp !== undefined && { firstTimestamp }),
  metadata: resourceVersion === undefined ? {} : { resourceVersion },
});

/** When it was seen last, RFC 3339; "" if it does not say. */
export const lastSeen = ({ lastTimestamp, firstTimestamp }: EventTimes): string =>
  lastTimestamp ?? firstTimestamp ?? "";

/** The oldest first. Times have a resolution of a second: within it, in the order in which Events were written. */
export function byTime(a: EventTimes, b: EventTimes): number {
  const [one, other] = [lastSeen(a), lastSeen(b)];
  if (one !== other) return one < other ? -1 : 1;
  return Number(a.metadata.resourceVersion ?? 0) - Number(b.metadata.resourceVersion ?? 0);
}
