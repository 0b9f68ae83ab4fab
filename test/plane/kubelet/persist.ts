/** Writes of the simulated kubelets, which outlive an API server that is down. */
import { setTimeout as sleep } from "node:timers/promises";

const RETRY_MS = 500;
/** The pod is gone, or another one of its name is there. */
const SETTLED: ReadonlySet<unknown> = new Set([404, 409]);

/** Does it after `delayMs`, and again until the API server has answered; a refusal is logged and final. */
export async function persist(delayMs: number, write: () => Promise<unknown>): Promise<void> {
  await sleep(delayMs);
  for (;;) {
    try {
      return void (await write());
    } catch (error) {
      const { cause, message } = error as Error;
      if (SETTLED.has(cause)) return;
      console.error(message);
      if (typeof cause === "number" && cause < 500) return;
    }
    await sleep(RETRY_MS);
  }
}
