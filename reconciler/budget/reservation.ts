/**
 * Reservations: disruptions that were allowed and may not have shown their effect yet (§5.6, §13.1).
 *
 *   a pod is to go      --written to the budget--> counts as not ready --pod of that UID gone, or 2 minutes--> expired
 *   a zone is to shrink --written to the budget--> the pods beyond the new replicas count as going
 *                                                  --stored: they lie beyond `spec.replicas`; or 90 s: it can no longer be stored--> expired
 *
 * If the answer to an eviction is lost, its reservation stays, as the pod may go: nobody releases it early, and a retry
 * shares it or waits (`notTwice` in decide-eviction.ts). The rollout keeps that of a deletion without an answer, too.
 */
import { CLOCK_SKEW_MS, parseTimestamp } from "../../infra/timestamp.ts";
import { STORE_TIMEOUT_MS } from "../model/scaling.ts";
import type { Zone } from "../model/zone.ts";

export interface Reservation {
  /** UID of the pod, or of the StatefulSet that is to shrink. */
  readonly uid: string;
  /** When it was made, RFC 3339. */
  readonly time: string;
  /** Identity of the process that made it; "" if the entry does not say. */
  readonly by: string;
}

/** A reservation and its place, for its release. */
export interface ReservationHandle extends Reservation {
  readonly namespace: string;
  readonly budget: string;
  /** Its key among the reservations. */
  readonly key: string;
  /** The reservation that this one replaced; it counts again after the release. */
  readonly before?: Reservation;
}

/** By the name of the pod, or for a downscale by `downscaleKey`. */
export type Reservations = Readonly<Record<string, Reservation>>;

/** The first pod of a StatefulSet that goes, and all after it. */
export interface LeavingPods {
  readonly statefulSet: string;
  /** The ordinal of the first of them. */
  readonly from: number;
}

/**
 * The key of a downscale's reservation: `ingester-zone-a-2+` for the pod of ordinal 2 and those after it. No pod has
 * such a name.
 */
export function downscaleKey({ statefulSet, from }: LeavingPods): string {
  return `${statefulSet}-${from}+`;
}

const DOWNSCALE_KEY = /^(?<statefulSet>.+)-(?<from>\d+)\+$/;

/** The pods that a downscale's reservation is about; undefined for the reservation of a pod. */
export function readDownscaleKey(key: string): LeavingPods | undefined {
  const { statefulSet, from } = DOWNSCALE_KEY.exec(key)?.groups ?? {};
  return statefulSet === undefined ? undefined : { statefulSet, from: Number(from) };
}

/**
 * The API server has finished an Eviction after 40 s: 30 s for webhooks and 10 s of retries. The rest exceeds the skew
 * between clocks (`CLOCK_SKEW_MS`).
 */
const LASTS_MS = 2 * 60_000;

/**
 * Prefix of the identity of a process that answers evictions. Its reservations are never released early, so that other
 * such processes may reuse them. The rollout releases its own when a pod could not be deleted.
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

/** Reads stored reservations; an entry that is not valid is left out. The definition requires no `by`. */
export function readReservations(written: unknown): Reservations {
  if (typeof written !== "object" || written === null) return {};
  return Object.fromEntries(
    Object.entries(written).flatMap(([key, value]) => readReservation(value).map((read) => [key, read] as const)),
  );
}

function readReservation(value: unknown): Reservation[] {
  const { uid, time, by } = (value ?? {}) as Partial<Record<keyof Reservation, unknown>>;
  if (typeof uid !== "string" || typeof time !== "string" || parseTimestamp(time) === undefined) return [];
  return [{ uid, time, by: typeof by === "string" ? by : "" }];
}

/** The existing pods and zones among those that reservations are about. */
export interface Present {
  readonly uidOfPod: (name: string) => string | undefined;
  readonly zone: (name: string) => Pick<Zone, "uid" | "firstOrdinal" | "replicas"> | undefined;
}

interface Named {
  readonly name: string;
  readonly uid: string;
}

/** These zones with their pods, and further pods. */
export function presentIn(
  zones: readonly (Zone & { readonly pods: readonly Named[] })[],
  others: Iterable<Named> = [],
): Present {
  const uids = new Map([...others, ...zones.flatMap(({ pods }) => pods)].map(({ name, uid }) => [name, uid]));
  return { uidOfPod: (name) => uids.get(name), zone: (name) => zones.find((zone) => zone.name === name) };
}

/**
 * The reservations that still count. One of a pod counts for 2 minutes, while the pod exists with the same UID. One of
 * a downscale counts until the downscale is stored, or can no longer be. A time that is further in the future than the
 * clock skew counts as now, so that the reservation ends once somebody writes the reservations (§13.16).
 */
export function livingReservations(all: Reservations, present: Present, now: number): Reservations {
  const living = Object.entries(all).filter(([key, reservation]) => isLiving(key, reservation, { present, now }));
  return Object.fromEntries(living.map(([key, reservation]) => [key, notInFuture(reservation, now)]));
}

/**
 * Milliseconds for which the disruption of the reservation may still take effect, by its time alone; 0 or less once it
 * cannot.
 */
export function timeLeft(key: string, reservation: Reservation, now: number): number {
  return (readDownscaleKey(key) ? STORE_TIMEOUT_MS : LASTS_MS) - ageOf(reservation, now);
}

function isLiving(
  key: string,
  reservation: Reservation,
  { present, now }: { readonly present: Present; readonly now: number },
): boolean {
  if (timeLeft(key, reservation, now) <= 0) return false;
  const leaving = readDownscaleKey(key);
  if (!leaving) return present.uidOfPod(key) === reservation.uid;
  const zone = present.zone(leaving.statefulSet);
  const isStored = zone !== undefined && zone.firstOrdinal + zone.replicas <= leaving.from;
  return zone?.uid === reservation.uid && !isStored;
}

function notInFuture(reservation: Reservation, now: number): Reservation {
  return ageOf(reservation, now) < -CLOCK_SKEW_MS ? { ...reservation, time: new Date(now).toISOString() } : reservation;
}

/**
 * The ordinal of the first pod of the zone that an allowed downscale removes, if the downscale may not be stored yet;
 * infinity if there is none.
 */
export function firstLeaving({ name, uid }: Pick<Zone, "name" | "uid">, reservations: Reservations): number {
  const leaving = Object.entries(reservations).flatMap(([key, reservation]) => {
    const { statefulSet, from } = reservation.uid === uid ? (readDownscaleKey(key) ?? {}) : {};
    return statefulSet === name && from !== undefined ? from : [];
  });
  return Math.min(Number.POSITIVE_INFINITY, ...leaving);
}

/** True if both are equal. */
export function isSame(a: Reservation | undefined, b: Reservation | undefined): boolean {
  return a?.uid === b?.uid && a?.time === b?.time && a?.by === b?.by;
}
