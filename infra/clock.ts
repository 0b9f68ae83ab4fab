/** Time as an argument: entry points pass `systemClock`, tests their own. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch: for what is written into objects and judged by others. */
  readonly now: () => number;
  /** A clock that never jumps, milliseconds: for deadlines. */
  readonly monotonic: () => number;
  /** Resolves after `ms`, or as soon as `signal` fires; never rejects. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const timer = setTimeout(done, Math.max(0, ms));
      signal?.addEventListener("abort", done, { once: true });
      function done(): void {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      }
    }),
};

/**
 * Tells the milliseconds since it was started, by the clock that counted more of them. The monotonic clock stands still while a machine is
 * suspended, and the wall clock may be set back. One that was set ahead lets too much time pass: for bounds that must not be outlived.
 */
export function startStopwatch({ now, monotonic }: Pick<Clock, "now" | "monotonic">): () => number {
  const wall = now();
  const steady = monotonic();
  return () => Math.max(now() - wall, monotonic() - steady);
}

/** A signal that fires with the first of these. Unlike AbortSignal.any it holds on to its sources: a chain of those was seen to lose an abort. */
export function firstOfSignals(...sources: readonly AbortSignal[]): AbortSignal {
  const first = new AbortController();
  for (const source of sources) {
    if (source.aborted) first.abort(source.reason);
    else source.addEventListener("abort", () => first.abort(source.reason), { once: true, signal: first.signal });
  }
  return first.signal;
}
