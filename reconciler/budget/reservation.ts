/**
 * Reservations: evictions that were allowed and may not have shown their effect yet (§5.6, §13.1).
 *
 *   allowed --written to the budget--> counts as not ready --pod of that UID gone, or 2 minutes--> expired
 */
import { parseTimestamp } from "../../infra/timestamp.ts";

export interface Reservation {
  readonly uid: string;
  /** When it was made, RFC 3339. */
  readonly time: string;
  /** Identity of the process that made it. */
  readonly by: string;
}

/** By the name of the pod. */
export type Reservations = Readonly<Record<string, Reservation>>;

/** The API server has finished an Eviction after 40 s: 30 s for webhooks and 10 s of retries. The rest exceeds the skew between clocks (`CLOCK_SKEW_MS`). */
export const LASTS_MS = 2 * 60_000;

/**
 * Prefix of the identity of a process that answers evictions. Its reservations are never released early, so that other such processes may reuse
 * them. The rollout releases its own when a pod could not be deleted.
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

/** Suffix of that identity in a reservation for an eviction that is pinned to no UID. */
const UNPINNED = "_unpinned";

/** The identity under which a process reserves an eviction that is pinned to no UID. */
export function unpinnedIdentity(identity: string): string {
  return `${identity}${UNPINNED}`;
}

/** True if the eviction may still reach a successor of the pod: the API server looks it up by name. */
export function isUnpinned({ by }: Pick<Reservation, "by">): boolean {
  return by.endsWith(UNPINNED);
}

/** Milliseconds since the reservation was made; negative if that is in the future. */
export function ageOf({ time }: Pick<Reservation, "time">, now: number): number {
  return now - (parseTimestamp(time) ?? 0);
}

/** Reads stored reservations; an entry that is not valid is left out. */
export function readReservations(written: unknown): Reservations {
  if (typeof written !== "object" || written === null) return {};
  return Object.fromEntries(Object.entries(written).filter((entry): entry is [string, Reservation] => isReservation(entry[1])));
}

function isReservation(value: unknown): value is Reservation {
  const { uid, time } = (value ?? {}) as Partial<Record<keyof Reservation, unknown>>;
  return typeof uid === "string" && typeof time === "string" && parseTimestamp(time) !== undefined;
}

/** The reservations that still count: younger than 2 minutes (a time in the future: §13.16), of a pod that exists with the same UID. */
export function livingReservations(all: Reservations, uidOf: (pod: string) => string | undefined, now: number): Reservations {
  return Object.fromEntries(
    Object.entries(all).filter(([pod, reservation]) => ageOf(reservation, now) < LASTS_MS && uidOf(pod) === reservation.uid),
  );
}

/** True if both are equal. */
export function isSame(a: Reservation | undefined, b: Reservation | undefined): boolean {
  return a?.uid === b?.uid && a?.time === b?.time && a?.by === b?.by;
}
