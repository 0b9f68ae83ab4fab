/**
 * Reservations: evictions that were allowed and may not have shown their effect yet (§5.6, §13.1).
 *
 *   allowed --written to the budget--> counts as not ready --pod of that UID gone, or 2 minutes--> over
 */
import { parseTimestamp } from "../../infra/timestamp.ts";

export interface Reservation {
  readonly uid: string;
  /** When it was made, RFC 3339. */
  readonly time: string;
  /** Who made it. */
  readonly by: string;
}

/** By the name of the pod. */
export type Reservations = Readonly<Record<string, Reservation>>;

/** The API server is done with an Eviction 40 s after it was asked for it: 30 s for webhooks, 10 s of its own tries. The rest is more than processes' clocks are apart (`CLOCK_SKEW_MS`). */
const LASTS_MS = 2 * 60_000;

/**
 * Begins the identity of a process that answers evictions. Its reservations are never taken back, so that another such process may rely on
 * them; those of the rollout are, when a pod could not be deleted.
 */
const EVICTION_IDENTITY = "webhook_";

/** The identity under which a process reserves evictions. */
export function evictionIdentity(name: string): string {
  return `${EVICTION_IDENTITY}${name}`;
}

/** True if the reservation was made for an eviction, not for the rollout. */
export function isForEviction({ by }: Pick<Reservation, "by">): boolean {
  return by.startsWith(EVICTION_IDENTITY);
}

/** Milliseconds since the reservation was made; negative if that is in the future. */
export function ageOf({ time }: Pick<Reservation, "time">, now: number): number {
  return now - (parseTimestamp(time) ?? 0);
}

/** Reads what was written; an entry that is none is left out. */
export function readReservations(written: unknown): Reservations {
  if (typeof written !== "object" || written === null) return {};
  return Object.fromEntries(Object.entries(written).filter((entry): entry is [string, Reservation] => isReservation(entry[1])));
}

function isReservation(value: unknown): value is Reservation {
  const { uid, time } = (value ?? {}) as Partial<Record<keyof Reservation, unknown>>;
  return typeof uid === "string" && typeof time === "string" && parseTimestamp(time) !== undefined;
}

/** Those that still count: younger than 2 minutes (one from the future is §13.16), of a pod that is there with the same UID. */
export function livingReservations(all: Reservations, uidOf: (pod: string) => string | undefined, now: number): Reservations {
  return Object.fromEntries(
    Object.entries(all).filter(([pod, reservation]) => ageOf(reservation, now) < LASTS_MS && uidOf(pod) === reservation.uid),
  );
}

/** True if both say the same. */
export function isSame(a: Reservation | undefined, b: Reservation | undefined): boolean {
  return a?.uid === b?.uid && a?.time === b?.time && a?.by === b?.by;
}
