/**
 * The work of a process while another holds the Lease: it measures the time without a renewal, and asks the holder to
 * hand over.
 */
import type { Clock } from "../clock.ts";
import { hasCode } from "../errors.ts";
import type { LeaseClock } from "../server-clock.ts";
import type { Cluster } from "./cluster.ts";
import { formatAnnouncement, renewalOf, SUCCESSOR, successorOf } from "./lease-succession.ts";
import { changeLease, writeLease } from "./lease-object.ts";
import type { Lease } from "./resources.ts";

export interface LeaseTools {
  readonly cluster: Cluster;
  readonly clock: LeaseClock;
}

export interface LeaseOptions {
  readonly namespace: string;
  readonly name: string;
  /** Unique for the process. */
  readonly identity: string;
  readonly durationMs: number;
  /** If true, it asks the holder to hand over while it waits. */
  readonly announces?: boolean;
}

/** Milliseconds between two announcements of one process: each makes a renewal of the holder conflict. */
const ANNOUNCE_EVERY_MS = 10_000;

/** Resolves once the Lease that was found says that a process waits; never rejects. */
type Announce = (found: Lease | undefined) => Promise<void>;

/** Returns the milliseconds since this renewal was first seen. */
export function observeRenewals(clock: Pick<Clock, "monotonic">): (found: Lease | undefined) => number {
  let seen: { readonly renewal: string; readonly at: number } | undefined;
  return (found) => {
    const renewal = renewalOf(found);
    const at = clock.monotonic();
    if (seen?.renewal !== renewal) seen = { renewal, at };
    return at - seen.at;
  };
}

/**
 * Announces that this process waits: at most once in 10 s, and only if no other process has done so recently, as one
 * announcement suffices.
 */
export function createAnnouncer({ cluster, clock }: LeaseTools, options: LeaseOptions, signal: AbortSignal): Announce {
  let announcedAt = -Infinity;
  return async (found) => {
    const [at, now] = [clock.monotonic(), clock.now()];
    if (at - announcedAt < ANNOUNCE_EVERY_MS || successorOf(found, now) !== undefined) return;
    const announcement = changeLease(options, found, {
      annotations: { [SUCCESSOR]: formatAnnouncement(options.identity, now) },
    });
    try {
      await writeLease(cluster, announcement, { deadlineMs: options.durationMs / 6, signal });
      announcedAt = at;
    } catch (error) {
      // A conflict means that the holder has just renewed it: the next poll tries again. Any other error only prolongs
      // the wait.
      if (!hasCode(error, "Conflict")) announcedAt = at;
    }
  };
}
