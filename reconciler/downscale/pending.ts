/**
 * Downscales that were admitted and may not be stored yet (§4.3, §4.9, §13.5): noted in the Lease that serialises them, before the first pod hears of it.
 *
 *   none --in one write with taking the Lease--> pending --spec.replicas <= to, or two changes of the spec--> may have happened: `last-downscale` is written
 *                                      --refused, one other change of the spec, or 90 s--> never happened
 *
 * Then it is pending no more, and those of its pods that are there are told to stay.
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
  /** When it was admitted, RFC 3339. */
  at: z.string(),
  /** Its pods could not all be told that they stay; it was denied. */
  refused: z.literal(true).optional(),
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

/** Adds a downscale to the one that is pending for the same StatefulSet, so that nothing of that one is forgotten. */
export function addDownscale(
  earlier: PendingDownscale | undefined,
  next: Pick<PendingDownscale, "uid" | "generation" | "from" | "to" | "at">,
): PendingDownscale {
  if (!earlier || earlier.uid !== next.uid) return { ...next, lowest: next.to };
  const last = mayHaveHappened(earlier, { generation: next.generation, replicas: next.from }) ? earlier.at : earlier.earlier;
  // Both were admitted on top of the same spec, so that only one of them can be stored: whichever it is, it has happened.
  const isRival = earlier.generation === next.generation && earlier.refused !== true;
  return {
    ...next,
    from: Math.max(earlier.from, next.from),
    to: isRival ? Math.max(earlier.to, next.to) : next.to,
    lowest: Math.min(earlier.lowest, next.to),
    ...(last !== undefined && { earlier: last }),
  };
}

/** Other webhooks may take their time, up to the API server's own 60 s; and clocks differ. */
const NOT_STORED_YET_MS = 90_000;

/** The StatefulSet as it is. */
interface Current {
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

/** How a downscale ends that is pending no more. */
export interface Settlement {
  /** False if it never happened: the time before it counts again. */
  readonly happened: boolean;
  /** When the StatefulSet was last scaled down, to be written on it. */
  readonly lastDownscale: string | undefined;
  /** Pods that may be prepared and stay, by their place in the StatefulSet: from the first up to and without the last. */
  readonly stay: { readonly from: number; readonly to: number };
}

/** How it ends; undefined while it may still happen. A StatefulSet that is gone, or was made anew, leaves nothing to do. */
export function settleDownscale(pending: PendingDownscale, zone: Current | undefined, now: number): Settlement | undefined {
  if (zone?.uid !== pending.uid) return { happened: false, lastDownscale: undefined, stay: { from: 0, to: 0 } };
  if (mayStillHappen(pending, zone, now)) return undefined;
  return {
    happened: mayHaveHappened(pending, zone),
    lastDownscale: lastDownscaleOf(pending, zone, now),
    stay: { from: pending.lowest, to: Math.max(pending.lowest, Math.min(pending.from, zone.replicas)) },
  };
}

/** The later of two times as they are written; one that is no time counts as later than any, so that it is noticed. */
export function laterOf(one: string | undefined, other: string | undefined): string | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return (parseTimestamp(one) ?? Number.POSITIVE_INFINITY) >= (parseTimestamp(other) ?? Number.POSITIVE_INFINITY) ? one : other;
}
