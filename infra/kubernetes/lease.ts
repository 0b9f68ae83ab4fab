/**
 * A Lease says which process may write (coordination.k8s.io/v1; §13.2).
 *
 *   free --create/take--> held --renew every 1/3--> held --release--> free
 *                          held --not renewed for its whole duration, as we saw it--> free for the taking
 *
 * The holder stops writing after 2/3 of the duration without a renewal, counted from before the request was sent; a challenger waits
 * the whole duration, counted from when it saw the last renewal. Clocks of different machines are never compared.
 *
 * A machine that was suspended: its monotonic clock stood still, so that the holder also counts by the wall clock, and takes the longer
 * time. Where both stood still it learns of it from the first answer after: what it sends before is kept by its preconditions alone.
 */
import { type Clock, startStopwatch } from "../clock.ts";
import type { Call, Cluster } from "./cluster.ts";
import { hasCode, RolloutError } from "../errors.ts";
import { changeLease, getLease, holdBy, writeLease } from "./lease-object.ts";
import type { Lease } from "./resources.ts";

/** What every write asks first. */
export interface Fence {
  /** Bounds for one write: it is over, on the server too, before the Lease can pass to another. Throws `LeaseLost` once nothing may be written. */
  readonly write: () => Call;
}

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
}

export interface AcquiredLease extends Fence {
  /** Aborted when the Lease is lost. */
  readonly lost: AbortSignal;
  /** Values kept on the Lease as annotations; written with the next renewal. */
  readonly annotations: Map<string, string>;
  /** Frees the Lease for the next process; what goes wrong is left to its expiry. */
  readonly release: () => Promise<void>;
}

/** Takes the Lease as soon as it is free; undefined if `signal` fires first. Rejects with what the cluster said, a lost race apart. */
export async function acquireLease(tools: LeaseTools, options: LeaseOptions, signal: AbortSignal): Promise<AcquiredLease | undefined> {
  const { cluster, clock } = tools;
  let seen: { version: string; at: number } | undefined;
  while (!signal.aborted) {
    const found = await getLease(cluster, options, { signal });
    const { version, isFree, leaseDurationSeconds } = readTenure(found, options.identity);
    if (seen?.version !== version) seen = { version, at: clock.monotonic() };
    if (isFree || clock.monotonic() - seen.at >= leaseDurationSeconds * 1000) {
      const held = await takeLease(tools, options, found).catch(lostRace);
      if (held) return held;
    }
    await clock.sleep(Math.min(1000, options.durationMs / 5), signal);
  }
  return undefined;
}

function readTenure(found: Lease | undefined, identity: string) {
  const { holderIdentity, leaseDurationSeconds = 0 } = found?.spec ?? {};
  const version = found?.metadata?.resourceVersion ?? "";
  return { version, isFree: !holderIdentity || holderIdentity === identity, leaseDurationSeconds };
}

/** Writes our name into the Lease and keeps renewing it. */
async function takeLease({ cluster, clock }: LeaseTools, options: LeaseOptions, found: Lease | undefined): Promise<AcquiredLease> {
  const { namespace, name, identity, durationMs } = options;
  const call = { deadlineMs: durationMs / 6 };
  const notes = new Map(Object.entries(found?.metadata?.annotations ?? {}));
  const { acquireTime } = holdBy(identity, durationMs, clock.now());
  const tenure = { acquireTime, leaseTransitions: (found?.spec?.leaseTransitions ?? 0) + (found ? 1 : 0) };
  const ended = new AbortController();
  const lost = new AbortController();

  /** As we know it; only this version is written. */
  let stored = found;
  let sinceProven = startStopwatch(clock);

  async function write(holderIdentity: string): Promise<void> {
    const sinceSent = startStopwatch(clock);
    const spec = { ...holdBy(holderIdentity, durationMs, clock.now()), ...tenure };
    stored = await writeLease(cluster, changeLease(options, stored, { annotations: Object.fromEntries(notes), spec }), call);
    sinceProven = sinceSent;
  }
  await write(identity);

  const remainingMs = (): number => (lost.signal.aborted ? 0 : durationMs * (2 / 3) - sinceProven());

  /** A renewal of ours whose answer was lost makes the next one conflict: then the Lease still bears our name. */
  async function readBack(): Promise<void> {
    const current = await getLease(cluster, options, call);
    if (current?.spec?.holderIdentity !== identity)
      return lost.abort(new RolloutError("LeaseLost", `lease ${namespace}/${name} was taken`));
    stored = current;
  }

  async function renewUntilEnded(): Promise<void> {
    for (let pause = durationMs / 3; remainingMs() > 0;) {
      await clock.sleep(pause, ended.signal);
      if (ended.signal.aborted) return;
      pause = durationMs / 3;
      try {
        await write(identity);
      } catch (error) {
        if (hasCode(error, "Conflict", "NotFound")) await readBack().catch(() => {});
        pause = durationMs / 30;
      }
    }
    lost.abort(new RolloutError("LeaseLost", `lease ${namespace}/${name} could not be renewed in time`));
  }
  const renewing = renewUntilEnded();

  return {
    annotations: notes,
    lost: lost.signal,
    write() {
      const deadlineMs = Math.floor(remainingMs());
      if (deadlineMs <= 0)
        throw new RolloutError("LeaseLost", `lease ${namespace}/${name} is no longer ours`, { cause: lost.signal.reason });
      return { deadlineMs, signal: lost.signal };
    },
    async release() {
      ended.abort();
      await renewing;
      if (remainingMs() > 0) await write("").catch(() => {});
    },
  };
}

function lostRace(error: unknown): undefined {
  if (!hasCode(error, "Conflict")) throw error;
}
