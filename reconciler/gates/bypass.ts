/**
 * A bypass: an annotation of a StatefulSet by which a person lets the zone begin without its gates, until a time. It
 * passes gates alone, and ends by itself.
 *
 *   annotation --the gate sees it--> at most 24 h ahead: accepted --its time is over, or it is removed--> no bypass
 *                                    later: refused, for as long as the zone has this value
 *
 * A gate judges a value once, and stores the verdict: a refused value must not begin to count later, by the passage of
 * time alone.
 */
import { CLOCK_SKEW_MS, formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import type { Bypass, Zone } from "../model/zone.ts";
import type { BypassRecord } from "./record.ts";

/** Milliseconds that a bypass may last. */
export const MAX_BYPASS_MS = 24 * 3_600_000;

type Annotated = Pick<Zone, "name" | "bypass">;

/** The author's clock may be ahead of ours by the skew. */
const isTooFar = (until: number, now: number): boolean => until - now > MAX_BYPASS_MS + CLOCK_SKEW_MS;

/** The records of the values that the zones have; new values are judged at `now` (milliseconds since the epoch). */
export function noteBypasses(
  stored: readonly BypassRecord[],
  zones: readonly Annotated[],
  now: number,
): readonly BypassRecord[] {
  return zones.flatMap(({ name: zone, bypass }): BypassRecord[] => {
    const until = bypass?.until === undefined ? undefined : parseTimestamp(bypass.until);
    if (!bypass || until === undefined) return [];
    const { until: written, reason } = bypass;
    const known = stored.find((one) => one.zone === zone && one.until === written);
    return [{ zone, until: written, accepted: known?.accepted ?? !isTooFar(until, now), ...(reason && { reason }) }];
  });
}

/** The bypass of a zone that counts at `now`; undefined without one. */
export function findBypass(
  stored: readonly BypassRecord[],
  { name, bypass }: Annotated,
  now: number,
): Bypass | undefined {
  const known = stored.find(({ zone, until, accepted }) => zone === name && until === bypass?.until && accepted);
  const until = known && parseTimestamp(known.until);
  // A clock that was turned back makes no bypass longer.
  if (until === undefined || until <= now || isTooFar(until, now)) return undefined;
  return { zone: name, until, ...(known?.reason && { reason: known.reason }) };
}

/** Until when, and why: `until 2026-01-01T00:00:00Z (the alert is a known one)`. */
export function describeBypass({ until, reason }: Bypass | BypassRecord): string {
  const time = typeof until === "number" ? formatTimestamp(until) : until;
  return `until ${time}${reason === undefined ? "" : ` (${reason})`}`;
}
