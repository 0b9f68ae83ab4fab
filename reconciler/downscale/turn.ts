/**
 * A zone whose downscales are admitted and never stored, because something else refuses them, must not hold the other zones for as long as
 * somebody asks (§13.5).
 *
 *   admitted (`since`) --again: renews `at`--> 90 s after `since`: refused --120 s after `at`--> admitted again: a new `since`
 *        the other zones are held until 90 s after `at`, 180 s at most, and have 30 s then in which this one cannot hold them again
 *
 * One that has happened ends the turn at once. What the reconciler has taken back stays noted for those 30 s.
 */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import type { Refusal } from "./decide.ts";
import { type Current, mayHaveHappened, NOT_STORED_YET_MS, type PendingDownscale } from "./pending.ts";

/** Milliseconds in which downscales of a zone may be asked for again and again: an autoscaler asks every 15 s, and the API server for 10 s after a conflict. */
const TURN_MS = 90_000;
/** Milliseconds after the last of them until the next turn: as long as it may be stored, and as two requests of an autoscaler take. */
const REST_MS = NOT_STORED_YET_MS + 30_000;

/** Adds a downscale to the one that is pending for the same StatefulSet, so that nothing of that one is forgotten. */
export function addDownscale(
  earlier: PendingDownscale | undefined,
  next: Pick<PendingDownscale, "uid" | "generation" | "from" | "to" | "at">,
): PendingDownscale {
  if (!earlier || earlier.uid !== next.uid) return { ...next, since: next.at, lowest: next.to };
  const zone = { uid: next.uid, generation: next.generation, replicas: next.from };
  const { since = next.at } = turnOf(earlier, zone, parseTimestamp(next.at) ?? 0) ?? {};
  const last = mayHaveHappened(earlier, zone) ? earlier.at : earlier.earlier;
  // Both were admitted on top of the same spec, so that only one of them can be stored: whichever it is, it has happened.
  const isRival = earlier.generation === next.generation && earlier.refused !== true;
  return {
    ...next,
    since,
    from: Math.max(earlier.from, next.from),
    to: isRival ? Math.max(earlier.to, next.to) : next.to,
    lowest: Math.min(earlier.lowest, next.to),
    ...(last !== undefined && { earlier: last }),
  };
}

/** The note of a downscale that was denied, and whose pods could not all be told that they stay: no turn of its zone, unless it was in one. */
export function refuseNoted(earlier: PendingDownscale | undefined, noted: PendingDownscale): PendingDownscale {
  const { since, ...others } = noted;
  return { ...others, refused: true, ...(earlier && since !== undefined && since === sinceOf(earlier) && { since }) };
}

function sinceOf({ since, refused, at }: PendingDownscale): string | undefined {
  return since ?? (refused === true ? undefined : at);
}

/** The turn that the zone is in, and when it may begin the next, milliseconds; undefined if that is now. */
function turnOf(pending: PendingDownscale | undefined, zone: Current, now: number) {
  if (!pending || pending.uid !== zone.uid || mayHaveHappened(pending, zone)) return undefined;
  const since = sinceOf(pending);
  const endsAt = (parseTimestamp(pending.at) ?? Number.NEGATIVE_INFINITY) + REST_MS;
  return since === undefined || now >= endsAt ? undefined : { since, endsAt };
}

/** The refusal of a further downscale of the zone once its turn is over; `now` in milliseconds. */
export function refuseFurther(pending: PendingDownscale | undefined, zone: Current, now: number): Refusal | undefined {
  const turn = turnOf(pending, zone, now);
  if (!turn || now - (parseTimestamp(turn.since) ?? Number.NEGATIVE_INFINITY) <= TURN_MS) return undefined;
  const message =
    `its downscales have been admitted since ${turn.since} and none was stored, so something else refuses them; it is refused until ` +
    `${formatTimestamp(turn.endsAt)} (for another ${Math.ceil((turn.endsAt - now) / 1000)} s), so that other zones of its group have their turn.`;
  return { reason: "NeverStored", message };
}

/** What stays noted of a downscale that was taken back, holding nobody, for as long as its zone's turn lasts. */
export function restOf(pending: PendingDownscale, zone: Current, now: number): PendingDownscale | undefined {
  const turn = turnOf(pending, zone, now);
  return turn && { ...pending, since: turn.since, refused: true, lowest: pending.from };
}

/** True while a note is there only so that the zone waits for its next turn: all its pods were told that they stay. */
export function isResting(pending: PendingDownscale, zone: Current, now: number): boolean {
  return pending.refused === true && pending.lowest >= pending.from && turnOf(pending, zone, now) !== undefined;
}
