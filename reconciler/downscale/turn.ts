/**
 * Turns of a zone. Another webhook may refuse every downscale of a zone after this one has admitted it. Repeated
 * requests for such a downscale must not block the other zones for ever (§13.5).
 *
 *   admitted (`since`) --repeated: renews `at`--> 90 s after `since`: refused --120 s after `at`--> admitted: a new turn with a new `since`
 *        the other zones are blocked until 90 s after `at`, for 180 s at most; in the 30 s after that this zone cannot block them
 *
 * A downscale that happens ends the turn at once. The record of a cancelled downscale remains for those 30 s.
 */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import type { DownscaleRefusal } from "./decide-admission.ts";
import type { Ordinals } from "./preparation.ts";
import { STORE_TIMEOUT_MS } from "../model/scaling.ts";
import { type Current, mayHaveHappened, type PendingDownscale } from "./pending.ts";

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

function joinRanges(one: Ordinals | undefined, other: Ordinals | undefined): Pick<PendingDownscale, "prepared"> {
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
export function cooldownOf(pending: PendingDownscale, zone: Current, now: number): PendingDownscale | undefined {
  const turn = turnOf(pending, zone, now);
  const { prepared: _, ...others } = pending;
  return turn && { ...others, since: turn.since, refused: true };
}

/** True while the record only delays the next turn of the zone: every preparation has been cancelled. */
export function isCoolingDown(pending: PendingDownscale, zone: Current, now: number): boolean {
  return pending.refused === true && !pending.prepared && turnOf(pending, zone, now) !== undefined;
}
