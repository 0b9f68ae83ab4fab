/** One signal for both ends of a call: its time is over, or its caller cancelled it. */
import { type Clock, startStopwatch, systemClock } from "./clock.ts";
import { RolloutError } from "./errors.ts";

export interface Deadline {
  /** Aborts with a RolloutError, `Timeout` or `Cancelled`, as its reason. */
  readonly signal: AbortSignal;
  /**
   * Milliseconds left, never negative. A process that was frozen reads 0 here before its timers fire and the signal
   * aborts.
   */
  remainingMs(): number;
  /** Ends it as the caller's signal would. */
  cancel(): void;
  [Symbol.dispose](): void;
}

/** Starts a deadline of `ms` milliseconds by `clock`; dispose of it after the call, or its timer keeps running. */
export function startDeadline(ms: number, caller?: AbortSignal, clock: Clock = systemClock): Deadline {
  const controller = new AbortController();
  const elapsed = startStopwatch(clock);
  const cancel = (): void => controller.abort(cancelled(caller));
  const expire = (): void => controller.abort(new RolloutError("Timeout", `no answer within ${Math.round(ms)} ms`));
  const stopTimer = (clock.after ?? afterTimeout)(Math.max(0, ms), expire);
  caller?.addEventListener("abort", cancel, { once: true });
  if (caller?.aborted) cancel();
  return {
    signal: controller.signal,
    cancel,
    remainingMs: () => Math.max(0, ms - elapsed()),
    [Symbol.dispose]: () => {
      stopTimer();
      caller?.removeEventListener("abort", cancel);
    },
  };
}

function afterTimeout(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

/** The error of a call that its caller cancelled. */
export function cancelled(caller: AbortSignal | undefined): RolloutError {
  return new RolloutError("Cancelled", "cancelled by the caller", { cause: caller?.reason });
}

/** The result of `work`, or the signal's reason if that fires first; `work` itself continues. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    const over = (): void => signal.removeEventListener("abort", stop);
    work.then(
      (result) => (over(), resolve(result)),
      (error: unknown) => (over(), reject(error)),
    );
  });
}
