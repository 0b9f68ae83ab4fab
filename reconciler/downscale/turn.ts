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
 * Adds a downscale to the pending one; the result covers both. That of an earlier StatefulSet of the name begins no turn
 * of this one, but pods may be prepared for it.
 */
export function addDownscale(
  earlier: PendingDownscale | undefined,
  next: Pick<PendingDownscale, "uid" | "generation" | "from" | "to" | "at">,
): PendingDownscale {
  if (!earlier) return { ...next, since: next.at, lowest: next.to };
  const [from, lowest] = [Math.max(earlier.from, next.from), Math.min(earlier.lowest, next.to)];
  if (earlier.uid !== next.uid) return { ...next, since: next.at, from, lowest };
  const zone = { uid: next.uid, generation: next.generation, replicas: next.from };
  const { since = next.at } = turnOf(earlier, zone, parseTimestamp(next.at) ?? 0) ?? {};
  const last = mayHaveHappened(earlier, zone) ? earlier.at : earlier.earlier;
  // Both were admitted for the same generation, so only one can be stored: with the larger `to`, either counts as
  // happened.
  const isConcurrent = earlier.generation === next.generation && earlier.refused !== true;
  return {
    ...next,
    since,
    from,
    to: isConcurrent ? Math.max(earlier.to, next.to) : next.to,
    lowest,
    ...(last !== undefined && { earlier: last }),
  };
}

/**
 * The record of a denied downscale, if some pod has not confirmed that its preparation was cancelled. It begins no
 * turn of its zone, and continues the one that the zone is in.
 */
export function markRefused(earlier: PendingDownscale | undefined, denied: PendingDownscale): PendingDownscale {
  const { since, ...others } = denied;
  return { ...others, refused: true, ...(earlier && since !== undefined && since === sinceOf(earlier) && { since }) };
}

function sinceOf({ since, refused, at }: PendingDownscale): string | undefined {
  return since ?? (refused === true ? undefined : at);
}

/** The current turn of the zone, and when the next turn may begin, in milliseconds; undefined if it may begin now. */
function turnOf(pending: PendingDownscale | undefined, zone: Current, now: number) {
  if (!pending || pending.uid !== zone.uid || mayHaveHappened(pending, zone)) return undefined;
  const since = sinceOf(pending);
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
  return turn && { ...pending, since: turn.since, refused: true, lowest: pending.from };
}

/** True while the record only delays the next turn of the zone: every preparation has been cancelled. */
export function isCoolingDown(pending: PendingDownscale, zone: Current, now: number): boolean {
  return pending.refused === true && pending.lowest >= pending.from && turnOf(pending, zone, now) !== undefined;
}
