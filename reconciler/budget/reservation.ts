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
import { STORE_TIMEOUT_MS } from "../model/annotations.ts";
import type { Zone } from "../model/zone.ts";

/** What takes the pods away: an eviction or a deletion by hand, the rollout, or fewer replicas. */
type DisruptionKind = "eviction" | "rollout" | "downscale";

export interface Reservation {
  readonly kind: DisruptionKind;
  /** UID of the pod; for a downscale, of the StatefulSet. */
  readonly uid: string;
  /** For a downscale: the ordinal of the first pod that goes. */
  readonly from?: number;
  /** Only the object of that UID can go. An eviction that is not pinned may reach a successor of the pod. */
  readonly pinned: boolean;
  /** When it was made, RFC 3339. */
  readonly time: string;
  /** Identity of the process that made it. */
  readonly by: string;
}

/** By the name of the pod, or for a downscale by `downscaleKey`. */
export type Reservations = Readonly<Record<string, Reservation>>;

/** A reservation and its place, for its release. */
export interface ReservationHandle extends Reservation {
  readonly namespace: string;
  readonly budget: string;
  /** Its key among the reservations. */
  readonly key: string;
}

/**
 * A key that is free, such as `ingester-zone-a/1`; no pod has such a name. Each downscale has its own, so that whoever
 * takes one back leaves other requests' entries for the same downscale. Nobody reads a key.
 */
export function downscaleKey(statefulSet: string, reservations: Reservations): string {
  for (let number = 1; ; number++) {
    const key = `${statefulSet}/${number}`;
    if (!Object.hasOwn(reservations, key)) return key;
  }
}

/** The reservation of this very pod. */
export function reservationOf(
  { name, uid }: { readonly name: string; readonly uid: string },
  reservations: Reservations,
): Reservation | undefined {
  const found = reservations[name];
  return found?.uid === uid ? found : undefined;
}

/** Milliseconds since the reservation was made; negative if that is in the future. */
export function ageOf({ time }: Pick<Reservation, "time">, now: number): number {
  return now - (parseTimestamp(time) ?? 0);
}

/** Reads stored reservations; an entry that is not valid is left out. */
export function readReservations(written: unknown): Reservations {
  if (typeof written !== "object" || written === null) return {};
  return Object.fromEntries(
    Object.entries(written).filter((entry): entry is [string, Reservation] => isValid(entry[1])),
  );
}

const KINDS: readonly unknown[] = ["eviction", "rollout", "downscale"] satisfies readonly DisruptionKind[];

function isValid(value: unknown): value is Reservation {
  const { kind, uid, from, pinned, time, by } = (value ?? {}) as Partial<Record<keyof Reservation, unknown>>;
  const isTimed = typeof time === "string" && parseTimestamp(time) !== undefined;
  const isNamed = typeof uid === "string" && typeof by === "string" && typeof pinned === "boolean";
  return KINDS.includes(kind) && isTimed && isNamed && Number.isSafeInteger(from) === (kind === "downscale");
}

/** The existing pods and zones among those that reservations are about. */
interface Present {
  /** UIDs. */
  readonly pods: ReadonlySet<string>;
  readonly zones: readonly Pick<Zone, "uid" | "firstOrdinal" | "replicas">[];
}

interface Identified {
  readonly uid: string;
}

/** These zones with their pods, and further pods. */
export function presentIn(
  zones: readonly (Zone & { readonly pods: readonly Identified[] })[],
  others: Iterable<Identified> = [],
): Present {
  return { pods: new Set([...others, ...zones.flatMap(({ pods }) => pods)].map(({ uid }) => uid)), zones };
}

/**
 * The reservations that still count. One of a pod counts for 2 minutes, while the pod of that UID exists. One of a
 * downscale counts until the downscale is stored, or can no longer be. Where nobody has looked what is `present`, only
 * time ends them. A time that is further in the future than the clock skew counts as now, so that the reservation ends
 * once somebody writes the reservations (§13.16).
 */
export function livingReservations(all: Reservations, present: Present | undefined, now: number): Reservations {
  const living = Object.entries(all).filter(
    ([, one]) => timeLeft(one, now) > 0 && (present === undefined || mayStillGo(one, present)),
  );
  return Object.fromEntries(living.map(([key, one]) => [key, notInFuture(one, now)]));
}

/**
 * The API server has finished an Eviction after 40 s: 30 s for webhooks and 10 s of retries. The rest exceeds the skew
 * between clocks (`CLOCK_SKEW_MS`).
 */
const LASTS_MS = 2 * 60_000;

/**
 * Milliseconds for which the disruption of the reservation may still take effect, by its time alone; 0 or less once it
 * cannot.
 */
export function timeLeft(reservation: Reservation, now: number): number {
  return (reservation.kind === "downscale" ? STORE_TIMEOUT_MS : LASTS_MS) - ageOf(reservation, now);
}

function mayStillGo({ kind, uid, from = 0 }: Reservation, { pods, zones }: Present): boolean {
  if (kind !== "downscale") return pods.has(uid);
  const zone = zones.find((one) => one.uid === uid);
  return zone !== undefined && zone.firstOrdinal + zone.replicas > from;
}

function notInFuture(reservation: Reservation, now: number): Reservation {
  return ageOf(reservation, now) < -CLOCK_SKEW_MS ? { ...reservation, time: new Date(now).toISOString() } : reservation;
}

/**
 * The ordinal of the first pod of the zone that an allowed downscale removes, if the downscale may not be stored yet;
 * infinity if there is none.
 */
export function firstLeaving({ uid }: Pick<Zone, "uid">, reservations: Reservations): number {
  const ours = Object.values(reservations).filter((one) => one.kind === "downscale" && one.uid === uid);
  return Math.min(Number.POSITIVE_INFINITY, ...ours.map(({ from = 0 }) => from));
}

export function isSame(a: Reservation | undefined, b: Reservation | undefined): boolean {
  return (["kind", "uid", "from", "pinned", "time", "by"] as const).every((field) => a?.[field] === b?.[field]);
}
