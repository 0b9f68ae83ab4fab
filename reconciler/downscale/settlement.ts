/** How a downscale ends that is pending no more (§13.5). */
import { parseTimestamp } from "../../infra/timestamp.ts";
import { type Current, lastDownscaleOf, mayHaveHappened, mayStillHappen, type PendingDownscale } from "./pending.ts";
import { isResting, restOf } from "./turn.ts";

export interface Settlement {
  /** False if it never happened: the time before it counts again. */
  readonly happened: boolean;
  /** When the StatefulSet was last scaled down, to be written on it. */
  readonly lastDownscale: string | undefined;
  /** Pods that may be prepared and stay, by their place in the StatefulSet: from the first up to and without the last. */
  readonly stay: { readonly from: number; readonly to: number };
  /** What stays noted once they have been told, if anything. */
  readonly rest: PendingDownscale | undefined;
}

/** Milliseconds from one attempt to tell pods to the next: a quarter of the note's age, as each keeps webhooks of the group waiting. */
const SHORTEST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 300_000;

/** How it ends; undefined while it may still happen, or there is nothing to do yet. A StatefulSet that is gone, or was made anew, leaves nothing to do. */
export function settleDownscale(pending: PendingDownscale, zone: Current | undefined, now: number): Settlement | undefined {
  if (zone?.uid !== pending.uid) return { happened: false, lastDownscale: undefined, stay: { from: 0, to: 0 }, rest: undefined };
  if (mayStillHappen(pending, zone, now) || isResting(pending, zone, now) || isPausing(pending, now)) return undefined;
  return {
    happened: mayHaveHappened(pending, zone),
    lastDownscale: lastDownscaleOf(pending, zone, now),
    stay: { from: pending.lowest, to: Math.max(pending.lowest, Math.min(pending.from, zone.replicas)) },
    rest: restOf(pending, zone, now),
  };
}

/** True for a while after its pods could not all be told, the longer the older it is. */
function isPausing({ at, tried }: PendingDownscale, now: number): boolean {
  const last = parseTimestamp(tried ?? "");
  if (last === undefined) return false;
  const age = last - (parseTimestamp(at) ?? last);
  return now - last < Math.min(Math.max(age / 4, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS);
}
