/** Waits for what no watch tells: asks again and again. */
import { setTimeout as sleep } from "node:timers/promises";

/** Far longer than anything takes on a machine under load: a test that reaches it has found a defect, or hangs. */
export const SOME_TIME_MS = 180_000;
/** Milliseconds between two checks, at first and at most: what takes minutes is not asked for ten times a second. */
const PAUSE_MS = { first: 50, most: 500 };
/** How much of the time so far passes until the next check. */
const SHARE = 0.1;

/**
 * Resolves once `check` gives true. A check that rejects counts as false: what is read may not have been made yet.
 * Rejects after `ms` with `what`, and with the last error as the cause.
 */
export async function until(
  what: string | (() => string),
  check: () => boolean | Promise<boolean>,
  ms = SOME_TIME_MS,
): Promise<void> {
  const start = performance.now();
  for (;;) {
    let cause: unknown;
    try {
      if (await check()) return;
    } catch (error) {
      cause = error;
    }
    const passed = performance.now() - start;
    if (passed > ms) throw new Error(`not within ${ms} ms: ${typeof what === "string" ? what : what()}`, { cause });
    await sleep(Math.min(Math.max(SHARE * passed, PAUSE_MS.first), PAUSE_MS.most));
  }
}
