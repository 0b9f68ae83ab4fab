/**
 * Pending downscales: admitted, and perhaps not stored yet (§4.3, §4.9, §13.5). The Lease that serialises downscales
 * records them before the first pod is prepared.
 *
 *   none --one write takes the Lease and adds it--> pending --fewer replicas, or two changes of the spec--> may have happened: `last-downscale` is written
 *                                      --refused, one other change of the spec, or 90 s--> never happened
 *
 * The record is then removed, and the preparation of the pods that still exist is cancelled.
 *
 * Where to find the rest:
 *   act/conclude-downscales.ts         the tick carries out how a record ends
 *   decide-admission.ts                whether the pods of the other zones allow a downscale; the time between zones: scaling/min-time.ts
 *   act/downscale-lease.ts             the Lease
 *   functions/downscale/               the webhook: refuse, record, POST to the pods, record the time, or cancel
 *
 * The StatefulSet cannot hold the record: a write to it would cause a conflict for a PUT of its scale that names a
 * resourceVersion.
 */
import * as z from "zod";
import { ownValue } from "../../infra/json.ts";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { STORE_TIMEOUT_MS } from "../model/annotations.ts";
import type { DownscaleRefusal } from "./decide-admission.ts";
import type { OrdinalRange } from "../model/order.ts";
import type { Zone } from "../model/zone.ts";

const PENDING = z.object({
  /** UID of the StatefulSet. */
  uid: z.string(),
  /**
   * Generation of the StatefulSet at the admission: a downscale that was admitted for this generation cannot be stored
   * after a change of the spec.
   */
  generation: z.int(),
  /** The replicas before the downscale. */
  from: z.int(),
  /** The replicas that were asked for; the most, if several requests were admitted for the same generation. */
  to: z.int(),
  /**
   * The ordinals of the pods that this downscale, or one before it, may have prepared; `end` is exclusive. Ordinals and
   * not places, as `spec.ordinals.start` may change meanwhile. Absent once every pod that stays was told so.
   */
  prepared: z.object({ start: z.int(), end: z.int() }).optional(),
  /** When the downscale was admitted, RFC 3339; for repeated requests, the last admission. */
  at: z.string(),
  /** When the first downscale of the zone's turn was admitted (below); absent if none was. */
  since: z.string().optional(),
  /** The downscale was denied, and not every pod confirmed that its preparation was cancelled. */
  refused: z.literal(true).optional(),
  /** When the last attempt to cancel the preparation failed for some pods, RFC 3339. */
  tried: z.string().optional(),
  /** When the downscale before this one happened, if no other place records it. */
  earlier: z.string().optional(),
});

export type PendingDownscale = Readonly<z.infer<typeof PENDING>>;

/** The pending downscales of a group, by StatefulSet. */
export type PendingDownscales = Readonly<Record<string, PendingDownscale>>;

/** Reads the annotation of the Lease, without what cannot be read: nobody else writes it. */
export function readPending(annotation = "{}"): PendingDownscales {
  try {
    const entries = Object.entries(JSON.parse(annotation) as object).flatMap(([name, value]) => {
      const read = PENDING.safeParse(value);
      return read.success ? [[name, read.data] as const] : [];
    });
    return Object.fromEntries(entries);
  } catch {
    return {};
  }
}

/** A zone before or after the downscale. */
export type Current = Pick<Zone, "uid" | "generation" | "replicas">;

/**
 * True if the StatefulSet has the requested replicas, or fewer than before: another webhook may have made the downscale
 * smaller. Also if its spec has changed twice: the first change may have been the downscale, and the second an upscale.
 * A single change that left the replicas was another one, and the downscale can no longer be stored after it.
 */
export function mayHaveHappened(
  { generation: admittedGeneration, from, to, refused }: PendingDownscale,
  { generation, replicas }: Omit<Current, "uid">,
): boolean {
  if (replicas <= to) return true;
  const changes = generation - admittedGeneration;
  return refused !== true && (changes > 1 || (changes === 1 && replicas < from));
}

/** True while the admitted write may still be stored; `now` in milliseconds. */
export function mayStillHappen(pending: PendingDownscale, current: Omit<Current, "uid">, now: number): boolean {
  if (mayHaveHappened(pending, current) || pending.refused === true || current.generation > pending.generation)
    return false;
  return now - (parseTimestamp(pending.at) ?? Number.NEGATIVE_INFINITY) < STORE_TIMEOUT_MS;
}

/** The first zone whose admitted downscale may still be stored, and a description of that downscale. */
export function findAdmitted(
  pending: PendingDownscales,
  zones: readonly Zone[],
  now: number,
): { readonly zone: Zone; readonly description: string } | undefined {
  for (const zone of zones) {
    const one = ownValue(pending, zone.name);
    if (one?.uid !== zone.uid || !mayStillHappen(one, zone, now)) continue;
    const description = `the downscale of ${zone.name} from ${one.from} to ${one.to} replicas, admitted at ${one.at}, may still be stored`;
    return { zone, description };
  }
  return undefined;
}

/**
 * The StatefulSet's last downscale by this record, RFC 3339. A downscale that may still happen counts; one that cannot
 * happen any more does not.
 */
export function lastDownscaleOf(pending: PendingDownscale | undefined, zone: Current, now: number): string | undefined {
  if (!pending || pending.uid !== zone.uid) return undefined;
  const counts = mayHaveHappened(pending, zone) || mayStillHappen(pending, zone, now);
  return counts ? pending.at : pending.earlier;
}

/** The later of two timestamps. An invalid timestamp counts as the latest, so that it is reported. */
export function laterOf(one: string | undefined, other: string | undefined): string | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return (parseTimestamp(one) ?? Number.POSITIVE_INFINITY) >= (parseTimestamp(other) ?? Number.POSITIVE_INFINITY)
    ? one
    : other;
}

// How a record begins: the turns of a zone (§13.5). Another webhook may refuse every downscale of a zone after this one
// has admitted it. Repeated requests for such a downscale must not block the other zones for ever.
//
//   admitted (`since`) --repeated: renews `at`--> 90 s after `since`: refused --120 s after `at`--> admitted: a new turn with a new `since`
//        the other zones are blocked until 90 s after `at`, for 180 s at most; in the 30 s after that this zone cannot block them
//
// A downscale that happens ends the turn at once. The record of a cancelled downscale remains for those 30 s.

/**
 * Milliseconds in which repeated downscales of a zone are admitted: an autoscaler repeats every 15 s, and the API
 * server for 10 s after a conflict.
 */
const TURN_MS = 90_000;
/**
 * Milliseconds from the last admission to the next turn: the time in which it may be stored, and two intervals of an
 * autoscaler.
 */
const COOLDOWN_MS = STORE_TIMEOUT_MS + 30_000;

/**
 * The record of a downscale that is admitted now. A record of the same name that is not concluded is replaced: what it
 * says of pods and times is taken over.
 */
export function addDownscale(
  earlier: PendingDownscale | undefined,
  next: Pick<PendingDownscale, "uid" | "generation" | "from" | "to" | "prepared" | "at">,
): PendingDownscale {
  if (!earlier) return { ...next, since: next.at };
  const prepared = joinRanges(earlier.prepared, next.prepared);
  // A StatefulSet that was made again may have kept prepared pods. It has no turn yet, and no earlier downscale.
  if (earlier.uid !== next.uid) return { ...next, ...prepared, since: next.at };
  const zone = { uid: next.uid, generation: next.generation, replicas: next.from };
  const { since = next.at } = turnOf(earlier, zone, parseTimestamp(next.at) ?? 0) ?? {};
  const last = mayHaveHappened(earlier, zone) ? earlier.at : earlier.earlier;
  // Both were admitted for the same generation, so only one can be stored: with the larger `to`, either counts as
  // happened.
  const isConcurrent = earlier.generation === next.generation && earlier.refused !== true;
  return {
    ...next,
    ...prepared,
    since,
    to: isConcurrent ? Math.max(earlier.to, next.to) : next.to,
    ...(last !== undefined && { earlier: last }),
  };
}

function joinRanges(
  one: OrdinalRange | undefined,
  other: OrdinalRange | undefined,
): Pick<PendingDownscale, "prepared"> {
  if (!one || !other) return { ...((one ?? other) && { prepared: one ?? other }) };
  return { prepared: { start: Math.min(one.start, other.start), end: Math.max(one.end, other.end) } };
}

/**
 * The record of a denied downscale, if some pod has not confirmed that its preparation was cancelled. It begins no
 * turn of its zone, and continues the one that the zone is in.
 */
export function markRefused(earlier: PendingDownscale | undefined, denied: PendingDownscale): PendingDownscale {
  const { since, ...others } = denied;
  return { ...others, refused: true, ...(since !== undefined && since === earlier?.since && { since }) };
}

/** The current turn of the zone, and when the next turn may begin, in milliseconds; undefined if it may begin now. */
function turnOf(pending: PendingDownscale | undefined, zone: Current, now: number) {
  if (!pending || pending.uid !== zone.uid || mayHaveHappened(pending, zone)) return undefined;
  const { since } = pending;
  const endsAt = (parseTimestamp(pending.at) ?? Number.NEGATIVE_INFINITY) + COOLDOWN_MS;
  return since === undefined || now >= endsAt ? undefined : { since, endsAt };
}

/** Refuses a further downscale of the zone after its turn; `now` in milliseconds. */
export function refuseFurther(
  pending: PendingDownscale | undefined,
  zone: Current,
  now: number,
): DownscaleRefusal | undefined {
  const turn = turnOf(pending, zone, now);
  if (!turn || now - (parseTimestamp(turn.since) ?? Number.NEGATIVE_INFINITY) <= TURN_MS) return undefined;
  const message =
    `its downscales have been admitted since ${turn.since} and none was stored, so something else refuses them; it is refused until ` +
    `${formatTimestamp(turn.endsAt)} (for another ${Math.ceil((turn.endsAt - now) / 1000)} s), so that any other zone of its group has its turn.`;
  return { reason: "NeverStored", message };
}

/** The record that remains of a cancelled downscale until the next turn of its zone; it does not block other zones. */
function cooldownOf(pending: PendingDownscale, zone: Current, now: number): PendingDownscale | undefined {
  const turn = turnOf(pending, zone, now);
  const { prepared: _, ...others } = pending;
  return turn && { ...others, since: turn.since, refused: true };
}

/** True while the record only delays the next turn of the zone: every preparation has been cancelled. */
function isCoolingDown(pending: PendingDownscale, zone: Current, now: number): boolean {
  return pending.refused === true && !pending.prepared && turnOf(pending, zone, now) !== undefined;
}

/** How a record ends (§13.5). */
export interface Conclusion {
  /** False if the downscale did not happen: the time of the downscale before it counts again. */
  readonly happened: boolean;
  /** The `last-downscale` to write on the StatefulSet, if any. */
  readonly lastDownscale: string | undefined;
  /** The ordinals of staying pods that may be prepared; `end` is exclusive. */
  readonly staying: OrdinalRange;
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
): OrdinalRange {
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
