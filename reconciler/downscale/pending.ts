/**
 * Downscales that were admitted and may not be stored yet (§4.3, §4.9, §13.5): noted in the Lease that serialises them, before the first pod hears of it.
 *
 *   none --in one write with taking the Lease--> pending --spec.replicas <= to, or two changes of the spec--> may have happened: `last-downscale` is written
 *                                      --refused, one other change of the spec, or 90 s--> never happened
 *
 * Then it is pending no more, and those of its pods that are there are told to stay.
 *
 * Where the halves of it are:
 *   functions/downscale/               the webhooks: refuse, note, POST to the pods, write down the time, or undo
 *   reconciler/pending-downscales/     what webhooks and tick both do to the cluster: the Lease and its note, calls to pods, times that are read;
 *                                      and the tick's part, settling
 *   reconciler/downscale/              pure: this note, a zone's turn (turn.ts), how it ends (settlement.ts), the other zones' pods (decide.ts),
 *                                      what pods want to be told (preparation.ts); the time between zones is in reconciler/scaling/min-time.ts
 *
 * The StatefulSet itself cannot carry the note: writing to it makes a PUT of its scale conflict that names a resourceVersion.
 */
import * as z from "zod";
import { parseTimestamp } from "../../infra/timestamp.ts";

const PENDING = z.object({
  /** UID of the StatefulSet. */
  uid: z.string(),
  /** Its generation when it was admitted: once the spec has changed since, what was admitted on top of it can no longer be stored. */
  generation: z.int(),
  from: z.int(),
  to: z.int(),
  /** The fewest replicas that any downscale asked for since: pods from here on may be prepared. */
  lowest: z.int(),
  /** When it was admitted, RFC 3339; the last time, if it was asked for again. */
  at: z.string(),
  /** When the first of those was admitted that are one turn of the zone (turn.ts); `at` if it is not written. */
  since: z.string().optional(),
  /** Its pods could not all be told that they stay; it was denied. */
  refused: z.literal(true).optional(),
  /** When its pods were last told that they stay, and not all answered, RFC 3339. */
  tried: z.string().optional(),
  /** When a downscale before it did happen, if that is not written down elsewhere. */
  earlier: z.string().optional(),
});

export type PendingDownscale = Readonly<z.infer<typeof PENDING>>;

/** Those of a group, by the name of their StatefulSet. */
export type PendingDownscales = Readonly<Record<string, PendingDownscale>>;

/** What the Lease's annotation says; what cannot be read is left out. */
export function readPending(note: string | undefined): PendingDownscales {
  const entries = Object.entries(parseObject(note ?? "{}")).flatMap(([name, value]) => {
    const read = PENDING.safeParse(value);
    return read.success ? [[name, read.data] as const] : [];
  });
  return Object.fromEntries(entries);
}

function parseObject(note: string): object {
  try {
    const value: unknown = JSON.parse(note);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** Other webhooks may take their time, up to the API server's own 60 s; and clocks differ. */
export const NOT_STORED_YET_MS = 90_000;

/** The StatefulSet as it is. */
export interface Current {
  readonly uid: string;
  readonly generation: number;
  readonly replicas: number;
}

/**
 * True if the StatefulSet has as few replicas as were asked for, or if its spec has changed twice: the first change may have been the downscale, and
 * the second an upscale. A single change that left more replicas was another one, after which the downscale can no longer be stored.
 */
export function mayHaveHappened(
  { generation: noted, to, refused }: PendingDownscale,
  { generation, replicas }: Omit<Current, "uid">,
): boolean {
  return replicas <= to || (refused !== true && generation > noted + 1);
}

/** True while the write that was admitted may still be stored; `now` in milliseconds. */
export function mayStillHappen(pending: PendingDownscale, current: Omit<Current, "uid">, now: number): boolean {
  if (mayHaveHappened(pending, current) || pending.refused === true || current.generation > pending.generation) return false;
  return now - (parseTimestamp(pending.at) ?? Number.NEGATIVE_INFINITY) < NOT_STORED_YET_MS;
}

/** The first of these zones whose downscale was admitted and may still be stored, and what to say of it. */
export function findAdmitted<Z extends Current & { readonly name: string }>(
  pending: PendingDownscales,
  zones: readonly Z[],
  now: number,
): { readonly zone: Z; readonly what: string } | undefined {
  for (const zone of zones) {
    const one = pending[zone.name];
    if (one?.uid !== zone.uid || !mayStillHappen(one, zone, now)) continue;
    const what = `the downscale of ${zone.name} from ${one.from} to ${one.to} replicas, admitted at ${one.at}, may still be stored`;
    return { zone, what };
  }
  return undefined;
}

/** When the StatefulSet was last scaled down as far as this note knows, RFC 3339. One that may still happen counts, one that never happened does not. */
export function lastDownscaleOf(pending: PendingDownscale | undefined, zone: Current, now: number): string | undefined {
  if (!pending || pending.uid !== zone.uid) return undefined;
  const counts = mayHaveHappened(pending, zone) || mayStillHappen(pending, zone, now);
  return counts ? pending.at : pending.earlier;
}

/** The later of two times as they are written; one that is no time counts as later than any, so that it is noticed. */
export function laterOf(one: string | undefined, other: string | undefined): string | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return (parseTimestamp(one) ?? Number.POSITIVE_INFINITY) >= (parseTimestamp(other) ?? Number.POSITIVE_INFINITY) ? one : other;
}
