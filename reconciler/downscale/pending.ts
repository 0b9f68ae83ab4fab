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
 *   turn.ts                            how a record begins, and how long a zone may repeat a downscale that is never stored
 *   conclusion.ts                      how it ends; carried out by the tick: act/conclude-downscales.ts, act/conclude-one.ts
 *   decide-admission.ts                whether the pods of the other zones allow a downscale; the time between zones: scaling/min-time.ts
 *   act/downscale-lease.ts             the Lease
 *   functions/downscale/               the webhook: refuse, record, POST to the pods, record the time, or cancel
 *
 * The StatefulSet cannot hold the record: a write to it would cause a conflict for a PUT of its scale that names a
 * resourceVersion.
 */
import * as z from "zod";
import { ownValue } from "../../infra/json.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import { STORE_TIMEOUT_MS } from "../model/scaling.ts";

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
  /** When the first downscale of the zone's turn was admitted (turn.ts); absent if none was. */
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

/** Reads the annotation of the Lease, without the entries that cannot be read: `describeUnreadable` names them. */
export function readPending(annotation: string | undefined): PendingDownscales {
  const entries = Object.entries(parseObject(annotation) ?? {}).flatMap(([name, value]) => {
    const read = PENDING.safeParse(value);
    return read.success ? [[name, read.data] as const] : [];
  });
  return Object.fromEntries(entries);
}

/** What cannot be read of the annotation: entries, each with its problem, or the whole. */
export function describeUnreadable(annotation: string | undefined): readonly string[] {
  const object = parseObject(annotation);
  if (!object) return ["all entries (they are no JSON object)"];
  return Object.entries(object).flatMap(([name, value]) => {
    const [first] = PENDING.safeParse(value).error?.issues ?? [];
    return first ? [`the entry of ${name} (${[...first.path, first.message].join(": ")})`] : [];
  });
}

function parseObject(annotation = "{}"): object | undefined {
  try {
    const value: unknown = JSON.parse(annotation);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The current state of the StatefulSet. */
export interface Current {
  readonly uid: string;
  readonly generation: number;
  readonly replicas: number;
}

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
export function findAdmitted<Z extends Current & { readonly name: string }>(
  pending: PendingDownscales,
  zones: readonly Z[],
  now: number,
): { readonly zone: Z; readonly description: string } | undefined {
  for (const zone of zones) {
    const one = ownValue(pending, zone.name);
    if (one?.uid !== zone.uid || !mayStillHappen(one, zone, now)) continue;
    const description = `the downscale of ${zone.name} from ${one.from} to ${one.to} replicas, admitted at ${one.at}, may still be stored`;
    return { zone, description: description };
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
