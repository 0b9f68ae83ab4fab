/** Time as an argument: entry points pass `systemClock`, tests their own. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch: for what is written into objects. */
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
      const timer = setTimeout(done, ms);
      signal?.addEventListener("abort", done, { once: true });
      function done(): void {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      }
    }),
};
