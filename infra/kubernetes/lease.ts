/**
 * A Lease says which process may write (coordination.k8s.io/v1; §13.2).
 *
 *   free --create/take--> held --renew every 1/3--> held --release--> free
 *                          held --seen without a renewal for its duration (lease-succession.ts)--> may be taken
 *                          held --another announces that it waits; the watch or the next renewal's conflict tells it--> held, awaited
 *
 * The holder stops writing after 2/3 of the duration without a renewal, counted from before the request was sent.
 *
 * The monotonic clock of a machine stops while it is suspended, so the holder counts by the wall clock as well, and
 * takes the longer time. If both clocks stopped, the first answer afterwards reveals it; until then only preconditions
 * protect what it writes.
 */
import { firstOfSignals, startStopwatch } from "../clock.ts";
import type { Call } from "./cluster.ts";
import { hasCode, RolloutError } from "../errors.ts";
import { changeLease, getLease, holdBy, writeLease } from "./lease-object.ts";
import {
  createAnnouncer,
  type LeaseOptions,
  type LeaseTools,
  observeRenewals,
  renewalOf,
  SUCCESSOR,
  successorOf,
  untilFree,
  type LeaseWatch,
  watchLease,
} from "./lease-succession.ts";
import type { Lease } from "./resources.ts";

/** Asked before every write. */
export interface Fence {
  /**
   * Bounds for one write: it ends, also on the server, before the Lease can pass to another process. Throws `LeaseLost`
   * once nothing may be written.
   */
  readonly write: () => Call;
}

export interface AcquiredLease extends Fence {
  /** Aborted when the Lease is lost. */
  readonly lost: AbortSignal;
  /** Aborted when another process has announced that it waits; the reason is its identity. */
  readonly awaited: AbortSignal;
  /** Values kept on the Lease as annotations; written with the next renewal. */
  readonly annotations: Map<string, string>;
  /** Frees the Lease for the next process; if that fails, it expires. */
  readonly release: () => Promise<void>;
}

/** Milliseconds between two reads of the Lease without a hint: while it is watched, and while it is not. */
const WATCHED_POLL_MS = 5000;
const POLL_MS = 1000;

/**
 * Takes the Lease as soon as it is free; undefined if `signal` fires first. Rejects with the cluster's error, except
 * for a lost race.
 */
export async function acquireLease(
  tools: LeaseTools,
  options: LeaseOptions,
  signal: AbortSignal,
): Promise<AcquiredLease | undefined> {
  // It begins before the announcement, and so tells of the answer.
  const watch = watchLease(tools, options);
  let held: AcquiredLease | undefined;
  try {
    held = await awaitLease(tools, options, { signal, watch });
    return held;
  } finally {
    if (!held) watch.end();
  }
}

async function awaitLease(
  tools: LeaseTools,
  options: LeaseOptions,
  { signal, watch }: { readonly signal: AbortSignal; readonly watch: LeaseWatch },
): Promise<AcquiredLease | undefined> {
  const { cluster, clock } = tools;
  const { durationMs, announces = false } = options;
  const countUnchanged = observeRenewals(clock);
  const announce = createAnnouncer(tools, options, signal);
  while (!signal.aborted) {
    const found = await getLease(cluster, options, { signal });
    const changed = new AbortController();
    watch.listen((lease) => renewalOf(lease) !== renewalOf(found) && changed.abort("changed"));
    const freeInMs = untilFree(found, { ...options, unchangedMs: countUnchanged(found) });
    if (freeInMs <= 0) {
      const held = await takeLease(tools, options, { found, watch }).catch(lostRace);
      if (held) return held;
    } else if (announces) await announce(found);
    const pollMs = Math.min(watch.isOpen() ? WATCHED_POLL_MS : POLL_MS, durationMs / 5);
    await clock.sleep(freeInMs > 0 ? Math.min(pollMs, freeInMs) : pollMs, firstOfSignals(signal, changed.signal));
  }
  return undefined;
}

interface Taking {
  readonly found: Lease | undefined;
  readonly watch: LeaseWatch;
}

/** Writes our name into the Lease and keeps renewing it. */
async function takeLease(
  { cluster, clock }: LeaseTools,
  options: LeaseOptions,
  { found, watch }: Taking,
): Promise<AcquiredLease> {
  const { namespace, name, identity, durationMs } = options;
  const call = { deadlineMs: durationMs / 6 };
  const notes = new Map(Object.entries(found?.metadata?.annotations ?? {}));
  // Our announcement is fulfilled; another waiting process announces itself again.
  notes.delete(SUCCESSOR);
  const { acquireTime } = holdBy(identity, durationMs, clock.now());
  const tenure = { acquireTime, leaseTransitions: (found?.spec?.leaseTransitions ?? 0) + (found ? 1 : 0) };
  const ended = new AbortController();
  const lost = new AbortController();
  const awaited = new AbortController();
  /** Also ends writes that still wait for a token of the rate limit as the Lease is released. */
  const over = firstOfSignals(lost.signal, ended.signal);
  over.addEventListener("abort", watch.end, { once: true });

  /** The Lease as we last saw it: its version is the precondition of each write. */
  let stored = found;
  let sinceProven = startStopwatch(clock);

  async function write(holderIdentity: string, annotations: Readonly<Record<string, string>> = {}): Promise<void> {
    const sinceSent = startStopwatch(clock);
    const spec = { ...holdBy(holderIdentity, durationMs, clock.now()), ...tenure };
    stored = await writeLease(
      cluster,
      changeLease(options, stored, { annotations: { ...Object.fromEntries(notes), ...annotations }, spec }),
      call,
    );
    sinceProven = sinceSent;
  }
  await write(identity, { [SUCCESSOR]: "" });

  const remainingMs = (): number => (lost.signal.aborted ? 0 : durationMs * (2 / 3) - sinceProven());

  /**
   * After a conflict the Lease may still have our name: another process has announced itself, or the answer to our last
   * renewal was lost.
   */
  async function readBack(): Promise<void> {
    look(await getLease(cluster, options, call));
  }

  function look(current: Lease | undefined): void {
    if (current?.spec?.holderIdentity !== identity)
      return lost.abort(new RolloutError("LeaseLost", `lease ${namespace}/${name} was taken`));
    stored = current;
    const successor = successorOf(current);
    if (successor !== undefined && successor !== identity) awaited.abort(successor);
  }

  watch.listen((lease) => {
    const isAnnounced = lease.spec?.holderIdentity === identity && successorOf(lease) !== undefined;
    if (isAnnounced && !awaited.signal.aborted) void hear().catch(() => {});
  });

  /** Reads what the watch tells of. */
  async function hear(): Promise<void> {
    const current = await getLease(cluster, options, call);
    if (!ended.signal.aborted) look(current);
  }

  /** An announcement between the last renewal and the release makes the release conflict. */
  async function free(): Promise<void> {
    try {
      await write("");
    } catch (error) {
      if (!hasCode(error, "Conflict")) return;
      await readBack().catch(() => {});
      if (remainingMs() > 0) await write("").catch(() => {});
    }
  }

  async function renewUntilEnded(): Promise<void> {
    for (let pause = durationMs / 3; remainingMs() > 0;) {
      await clock.sleep(pause, over);
      if (over.aborted) return;
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
    awaited: awaited.signal,
    write() {
      const deadlineMs = Math.floor(remainingMs());
      // Once it is released, another process may take it at any moment.
      if (ended.signal.aborted || deadlineMs <= 0)
        throw new RolloutError("LeaseLost", `lease ${namespace}/${name} is no longer ours`, {
          cause: lost.signal.reason,
        });
      return { deadlineMs, signal: over };
    },
    async release() {
      ended.abort();
      await renewing;
      if (remainingMs() > 0) await free();
    },
  };
}

function lostRace(error: unknown): undefined {
  if (!hasCode(error, "Conflict")) throw error;
}
