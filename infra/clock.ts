/** Time as an argument: entry points pass `systemClock`, tests their own. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch: for times that are written into objects. */
  readonly now: () => number;
  /** Monotonic clock, milliseconds: for deadlines. */
  readonly monotonic: () => number;
  /** The wall clock for bounds that must not be exceeded; `now` if left out. */
  readonly wall?: () => number;
  /** Resolves after `ms` (24 days at most), or as soon as `signal` fires; never rejects. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** Runs `run` once after `ms`, unless the function that it returns is called before; by Node's timers if left out. */
  readonly after?: (ms: number, run: () => void) => () => void;
}

/** A timer of Node.js runs at once if its time is longer: the next longest sleep is better than none. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const timer = setTimeout(done, Math.min(Math.max(0, ms), MAX_TIMER_MS));
      signal?.addEventListener("abort", done, { once: true });
      function done(): void {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      }
    }),
};

/**
 * Returns the milliseconds since its start, by the clock that counted more: the monotonic clock stops while a machine
 * is suspended, and the wall clock may be set back. If the wall clock is set ahead, the stopwatch runs too fast: use it
 * for bounds that must not be exceeded.
 */
export function startStopwatch({
  now,
  monotonic,
  wall = now,
}: Pick<Clock, "now" | "monotonic" | "wall">): () => number {
  const [byWall, bySteady] = [wall(), monotonic()];
  return () => Math.max(wall() - byWall, monotonic() - bySteady);
}

/**
 * A signal that fires with the first of its sources. Unlike AbortSignal.any it keeps references to them: chains of
 * AbortSignal.any lost an abort.
 */
export function firstOfSignals(...sources: readonly AbortSignal[]): AbortSignal {
  const first = new AbortController();
  for (const source of sources) {
    const abort = (): void => first.abort(source.reason);
    if (source.aborted) abort();
    if (first.signal.aborted) break;
    source.addEventListener("abort", abort, { once: true });
    // Not with the option `signal`: Node.js would keep the listeners on the first signal as long as the process lives.
    first.signal.addEventListener("abort", () => source.removeEventListener("abort", abort), { once: true });
  }
  return first.signal;
}
