/** Waits for what no watch tells: asks again and again. */
import { setTimeout as sleep } from "node:timers/promises";

/** Far longer than anything takes on a machine under load: a test that reaches it has found a defect, or hangs. */
export const SOME_TIME_MS = 180_000;
const PAUSE_MS = 100;

/**
 * Resolves once `check` gives true. A check that rejects counts as false: what is read may not have been made yet.
 * Rejects after `ms` with `what`, and with the last error as the cause.
 */
export async function until(
  what: string | (() => string),
  check: () => boolean | Promise<boolean>,
  ms = SOME_TIME_MS,
): Promise<void> {
  const end = performance.now() + ms;
  for (;;) {
    let cause: unknown;
    try {
      if (await check()) return;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > end)
      throw new Error(`not within ${ms} ms: ${typeof what === "string" ? what : what()}`, { cause });
    await sleep(PAUSE_MS);
  }
}
