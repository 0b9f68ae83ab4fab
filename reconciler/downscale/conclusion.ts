/** Decides how a pending downscale ends (§13.5). */
import { parseTimestamp } from "../../infra/timestamp.ts";
import { STORE_TIMEOUT_MS } from "../model/scaling.ts";
import { type Current, lastDownscaleOf, mayHaveHappened, mayStillHappen, type PendingDownscale } from "./pending.ts";
import type { Zone } from "../model/zone.ts";
import type { Ordinals } from "./preparation.ts";
import { isCoolingDown, cooldownOf } from "./turn.ts";

export interface Conclusion {
  /** False if the downscale did not happen: the time of the downscale before it counts again. */
  readonly happened: boolean;
  /** The `last-downscale` to write on the StatefulSet, if any. */
  readonly lastDownscale: string | undefined;
  /** The ordinals of staying pods that may be prepared; `end` is exclusive. */
  readonly staying: Ordinals;
  /** The record that remains after every preparation is cancelled, if the zone has to cool down. */
  readonly cooldown: PendingDownscale | undefined;
}

/**
 * Milliseconds between attempts to cancel preparations: a quarter of the record's age within these bounds, as each
 * attempt blocks the group's webhooks.
 */
const MIN_BACKOFF_MS = 30_000;
const MAX_BACKOFF_MS = 300_000;

/**
 * The conclusion; undefined while the downscale may still happen, or if nothing is due yet. Pods of a StatefulSet that was
 * made again may be prepared, too: kept ones, or new ones of the same names. One that is gone may be made again for as
 * long as the downscale could be stored; after that it leaves nothing to conclude.
 */
export function concludeDownscale(
  pending: PendingDownscale,
  zone: (Current & Pick<Zone, "firstOrdinal">) | undefined,
  now: number,
): Conclusion | undefined {
  if (!zone && now - (parseTimestamp(pending.at) ?? -Infinity) < STORE_TIMEOUT_MS) return undefined;
  if (!zone) return { happened: false, lastDownscale: undefined, staying: { start: 0, end: 0 }, cooldown: undefined };
  const isSame = zone.uid === pending.uid;
  if ((isSame && mayStillHappen(pending, zone, now)) || isCoolingDown(pending, zone, now) || isBackingOff(pending, now))
    return undefined;
  return {
    happened: isSame && mayHaveHappened(pending, zone),
    lastDownscale: lastDownscaleOf(pending, zone, now),
    staying: stayingOf(pending, zone),
    cooldown: cooldownOf(pending, zone, now),
  };
}

function stayingOf(
  { prepared = { start: 0, end: 0 } }: PendingDownscale,
  { firstOrdinal, replicas }: Pick<Zone, "firstOrdinal" | "replicas">,
): Ordinals {
  const start = Math.max(prepared.start, firstOrdinal);
  return { start, end: Math.max(start, Math.min(prepared.end, firstOrdinal + replicas)) };
}

/** True for some time after a failed attempt to cancel preparations; the time grows with the age of the record. */
function isBackingOff({ at, tried }: PendingDownscale, now: number): boolean {
  const last = parseTimestamp(tried ?? "");
  if (last === undefined) return false;
  const age = last - (parseTimestamp(at) ?? last);
  return now - last < Math.min(Math.max(age / 4, MIN_BACKOFF_MS), MAX_BACKOFF_MS);
}
