/**
 * When a process may take the Lease of another, and how a waiting process asks the holder for it. Pure.
 *
 * A holder stops writing 2/3 of the duration after it sent its last renewal, and renews every 1/3. A challenger takes
 * the Lease once it has seen no renewal
 *
 *   - for the whole duration: no clocks are compared; or
 *   - for half the duration, in which a live holder would have renewed (1/3, and 1/6 that a renewal may take), if by the API server's time its
 *     duration and `CLOCK_SKEW_MS` are over, too. A Lease without its time, or without its duration, tells neither. So two processes may write at once only if a holder cannot renew and, in that same moment,
 *     the challenger's time is ahead of the time that the holder wrote by more than 1/3 of the duration and `CLOCK_SKEW_MS`: 10 s by default.
 */
import { parseTimestamp } from "../timestamp.ts";
import { isHeldByOther } from "./lease-object.ts";
import type { Lease } from "./resources.ts";

export interface Observation {
  /** The process that asks for the Lease. */
  readonly identity: string;
  /** Milliseconds for which it would have the Lease: those of a holder whose Lease does not say. */
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

/** By the clocks. A Lease without its times tells nothing. */
function hasExpired(found: Lease, { identity, now }: Observation): boolean {
  const { renewTime = "", leaseDurationSeconds } = found.spec ?? {};
  if (now === undefined || !leaseDurationSeconds || parseTimestamp(renewTime) === undefined) return false;
  return !isHeldByOther(found, identity, now);
}

/** Differs after each renewal, and not after an announcement. */
export function renewalOf(found: Lease | undefined): string {
  const { holderIdentity = "", acquireTime = "", renewTime = "", leaseTransitions = 0 } = found?.spec ?? {};
  return [holderIdentity, acquireTime, renewTime, leaseTransitions].join(" ");
}

/**
 * Annotation of the Lease: the process that waits for it, and since when. The process that takes the Lease empties it.
 */
export const SUCCESSOR = "zonewise/successor";

/** After this time an announcement counts no more: its process may have died. */
const ANNOUNCEMENT_MS = 30_000;

export function formatAnnouncement(identity: string, now: number): string {
  return `${new Date(now).toISOString()} ${identity}`;
}

/**
 * The process that waits, if one has announced itself lately. Too fresh a time counts like one too old: a clock is
 * wrong.
 */
export function successorOf(found: Lease | undefined, now: number): string | undefined {
  const [at = "", ...name] = (found?.metadata?.annotations?.[SUCCESSOR] ?? "").split(" ");
  const announcedAt = parseTimestamp(at);
  return announcedAt !== undefined && Math.abs(now - announcedAt) < ANNOUNCEMENT_MS ? name.join(" ") : undefined;
}
