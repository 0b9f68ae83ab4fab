/**
 * Decides when a process may take the Lease of another, and lets a waiting process ask the holder for it. Pure.
 *
 * A holder stops writing 2/3 of the duration after it sent its last renewal, and renews every 1/3. A challenger takes
 * the Lease once it has seen no renewal
 *
 *   - for the whole duration: no clocks are compared; or
 *   - for half the duration, in which a live holder would have renewed (1/3, and 1/6 that a renewal may take), if by the API server's time its
 *     duration and `CLOCK_SKEW_MS` are over, too. This rule does not apply to a Lease without its time or its duration.
 *
 * So two processes may write at once only if a holder cannot renew and, at the same moment, the challenger's time is
 * ahead of the time that the holder wrote by more than 1/3 of the duration and `CLOCK_SKEW_MS`: 10 s by default.
 */
import { parseTimestamp } from "../timestamp.ts";
import { isHeldByOther } from "./lease-object.ts";
import type { Lease } from "./resources.ts";

interface Observation {
  /** The process that asks for the Lease. */
  readonly identity: string;
  /** Duration of the challenger's own Lease in milliseconds, also used for a Lease that does not state its duration. */
  readonly durationMs: number;
  /** Milliseconds since the challenger first saw the latest renewal. */
  readonly unchangedMs: number;
  /** The API server's time, milliseconds since the epoch; undefined if it is not known. */
  readonly now: number | undefined;
}

/** True for a Lease that is free, is the challenger's own, or has expired (§13.2). */
export function mayTake(found: Lease | undefined, observation: Observation): boolean {
  const { identity, unchangedMs, durationMs: ownMs } = observation;
  const { holderIdentity, leaseDurationSeconds = 0 } = found?.spec ?? {};
  if (!found || !holderIdentity || holderIdentity === identity) return true;
  const durationMs = leaseDurationSeconds * 1000 || ownMs;
  if (unchangedMs >= durationMs) return true;
  return unchangedMs >= durationMs / 2 && hasExpired(found, observation);
}

/**
 * Compares clocks: true if the Lease has expired. A Lease without its time or its duration does not expire this way.
 */
function hasExpired(found: Lease, { identity, now }: Observation): boolean {
  const { renewTime = "", leaseDurationSeconds } = found.spec ?? {};
  if (now === undefined || !leaseDurationSeconds || parseTimestamp(renewTime) === undefined) return false;
  return !isHeldByOther(found, identity, now);
}

/** Changes with each renewal, but not with an announcement. */
export function renewalOf(found: Lease | undefined): string {
  const { holderIdentity = "", acquireTime = "", renewTime = "", leaseTransitions = 0 } = found?.spec ?? {};
  return [holderIdentity, acquireTime, renewTime, leaseTransitions].join(" ");
}

/**
 * Annotation of the Lease: the process that waits for it, and since when. The process that takes the Lease empties it.
 */
export const SUCCESSOR = "zonewise/successor";

/** An announcement older than this does not count: its process may have died. */
const ANNOUNCEMENT_MS = 30_000;

export function formatAnnouncement(identity: string, now: number): string {
  return `${new Date(now).toISOString()} ${identity}`;
}

/**
 * The process that waits, if one has announced itself within `ANNOUNCEMENT_MS`. A time too far in the future counts as
 * too old: a clock is wrong.
 */
export function successorOf(found: Lease | undefined, now: number): string | undefined {
  const [at = "", ...name] = (found?.metadata?.annotations?.[SUCCESSOR] ?? "").split(" ");
  const announcedAt = parseTimestamp(at);
  return announcedAt !== undefined && Math.abs(now - announcedAt) < ANNOUNCEMENT_MS ? name.join(" ") : undefined;
}
