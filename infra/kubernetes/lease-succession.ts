/**
 * When a process may take the Lease of another, and how it asks the holder for it.
 *
 * A holder stops writing 2/3 of the duration after it sent its last renewal, and renews every 1/3. A challenger takes
 * the Lease once it has seen no renewal for the whole duration, by its own monotonic clock: no clocks are compared.
 */
import type { Clock } from "../clock.ts";
import { hasCode } from "../errors.ts";
import type { Cluster } from "./cluster.ts";
import { changeLease, writeLease } from "./lease-object.ts";
import { type Lease, leases } from "./resources.ts";
import { keepOpen } from "./watch.ts";

export interface LeaseTools {
  readonly cluster: Cluster;
  readonly clock: Clock;
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

interface Observation {
  /** The process that asks for the Lease. */
  readonly identity: string;
  /** Duration of the challenger's own Lease in milliseconds, also used for a Lease that does not state its duration. */
  readonly durationMs: number;
  /** Milliseconds since the challenger first saw the latest renewal. */
  readonly unchangedMs: number;
}

/** Milliseconds until a challenger may take it; 0 for a Lease that is free, is its own, or has expired (§13.2). */
export function untilFree(found: Lease | undefined, observation: Observation): number {
  const { identity, unchangedMs, durationMs } = observation;
  const { holderIdentity, leaseDurationSeconds = 0 } = found?.spec ?? {};
  if (!holderIdentity || holderIdentity === identity) return 0;
  return Math.max(0, (leaseDurationSeconds * 1000 || durationMs) - unchangedMs);
}

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

/** Changes with each renewal, but not with an announcement. */
export function renewalOf(found: Lease | undefined): string {
  const { holderIdentity = "", acquireTime = "", renewTime = "", leaseTransitions = 0 } = found?.spec ?? {};
  return [holderIdentity, acquireTime, renewTime, leaseTransitions].join(" ");
}

/**
 * Annotation of the Lease: the process that waits for it. The process that takes the Lease empties it, so a name is
 * never older than the time of the holder.
 */
export const SUCCESSOR = "zonewise/successor";

/** The process that waits, if one has announced itself. */
export function successorOf(found: Lease | undefined): string | undefined {
  return found?.metadata?.annotations?.[SUCCESSOR] || undefined;
}

/** Milliseconds between two announcements of one process: each makes a renewal of the holder conflict. */
const ANNOUNCE_EVERY_MS = 10_000;

/** Resolves once the Lease that was found says that a process waits; never rejects. */
type Announce = (found: Lease | undefined) => Promise<void>;

/**
 * Announces that this process waits: at most once in 10 s, and only if the Lease names no other process, as one
 * announcement suffices.
 */
export function createAnnouncer({ cluster, clock }: LeaseTools, options: LeaseOptions, signal: AbortSignal): Announce {
  let announcedAt = -Infinity;
  return async (found) => {
    const at = clock.monotonic();
    if (at - announcedAt < ANNOUNCE_EVERY_MS || successorOf(found) !== undefined) return;
    const announcement = changeLease(options, found, { annotations: { [SUCCESSOR]: options.identity } });
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

/**
 * The watch of one Lease, for the process that waits for it and for its holder. What it tells may be late, and a watch may
 * be cut: a process that waits reads the Lease again before it acts, also without a hint.
 */
export interface LeaseWatch {
  /** False until the watch tells of its first object, and after it has ended. */
  readonly isOpen: () => boolean;
  /** Receives the Lease of each event from now on, in place of the function before. */
  readonly listen: (onLease: (lease: Lease) => void) => void;
  readonly end: () => void;
}

/** Watches until its end. Without a version, a watch first tells of the Lease as it is: a cut loses nothing. */
export function watchLease({ cluster, clock }: LeaseTools, { namespace, name }: LeaseOptions): LeaseWatch {
  const over = new AbortController();
  const { signal } = over;
  const query = { namespace, fieldSelector: `metadata.name=${name}`, resourceVersion: "" };
  let isOpen = false;
  let tell = (_lease: Lease): void => {};

  const onObject = (_type: string, lease: Lease): void => {
    isOpen = true;
    tell(lease);
  };

  void keepOpen(() => cluster.watch(leases, query, { onHint: () => {}, onObject, signal }), {
    clock,
    signal,
    onCut: () => void (isOpen = false),
  });
  return {
    isOpen: () => isOpen,
    listen: (onLease) => void (tell = onLease),
    // With a reason, as Node.js would otherwise create an error.
    end: () => over.abort("over"),
  };
}
