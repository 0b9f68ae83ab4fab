/**
 * Retries a write that has lost a race against another writer:
 *
 *   read -> decide -> write with the version that was read --Conflict--> random pause -> read again -> decide again -> ...
 *                                                          --attempts or time are spent--> rejects with the last error
 */
import type { Clock } from "../clock.ts";
import { hasCode } from "../errors.ts";
import type { Call } from "./cluster.ts";

export interface RetryOptions {
  readonly clock: Pick<Clock, "monotonic" | "sleep">;
  /** Bounds of all attempts together: none begins later. */
  readonly call?: Call;
  /** True for an error after which another attempt may succeed; by default a `Conflict`. */
  readonly when?: (error: unknown) => boolean;
  readonly random?: () => number;
}

/** As many as client-go makes: https://pkg.go.dev/k8s.io/client-go/util/retry#pkg-variables */
const ATTEMPTS = 5;
const DEFAULTS = {
  when: (error: unknown): boolean => hasCode(error, "Conflict"),
  // Looked up at each call: a simulation may replace Math.random after this module was loaded.
  random: () => Math.random(),
};
/**
 * Milliseconds: the upper bound of the first pause, which doubles each time. The pauses are random, so that two
 * processes that collided once do not collide again.
 */
const FIRST_PAUSE_MS = 20;

/** `attempt` is called with its number, from 1 on. Rejects with the error of the last attempt. */
export async function retryOnConflict<T>(attempt: (number: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, when, random } = { ...DEFAULTS, ...options };
  const leftMs = countDown(options);
  for (let number = 1, pauseMs = FIRST_PAUSE_MS; ; number++, pauseMs *= 2) {
    try {
      return await attempt(number);
    } catch (error) {
      if (number >= ATTEMPTS || !when(error) || leftMs() <= 0) throw error;
      await clock.sleep(Math.min(random() * pauseMs, leftMs()), options.call?.signal);
      if (leftMs() <= 0) throw error;
    }
  }
}

/** Returns the milliseconds until no attempt may begin. */
function countDown({ clock, call = {} }: RetryOptions): () => number {
  const endsAt = clock.monotonic() + (call.deadlineMs ?? Infinity);
  return () => (call.signal?.aborted ? 0 : endsAt - clock.monotonic());
}
