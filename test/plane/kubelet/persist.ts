/** Writes of the simulated kubelets, which outlive an API server that is down. */
import { setTimeout as sleep } from "node:timers/promises";

const RETRY_MS = 500;
const NOT_FOUND = 404;
const CONFLICT = 409;
const TOO_MANY_REQUESTS = 429;

/**
 * Does it after `delayMs`, and again until the API server has answered; a refusal is logged and final. A conflict ends
 * it if `isGone`: another pod of the name is there. Otherwise other writers were faster, several times in a row.
 */
export async function persist(delayMs: number, write: () => Promise<unknown>, isGone = () => true): Promise<void> {
  await sleep(delayMs);
  for (;;) {
    try {
      return void (await write());
    } catch (error) {
      const { cause, message } = error as Error;
      if (cause === NOT_FOUND || (cause === CONFLICT && isGone())) return;
      console.error(message);
      const isRefusal = typeof cause === "number" && cause < 500;
      if (isRefusal && cause !== CONFLICT && cause !== TOO_MANY_REQUESTS) return;
    }
    await sleep(RETRY_MS);
  }
}
