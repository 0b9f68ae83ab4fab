/** So many at a time, the rest in the order in which they came. */
import { RolloutError } from "./errors.ts";

export interface Slots {
  /** Waits for a free slot; dispose of it to free it. Rejects with `Cancelled` once `signal` fires. */
  take(signal?: AbortSignal): Promise<Disposable>;
}

export function createSlots(count: number): Slots {
  let free = count;
  const waiting = new Set<() => void>();

  function release(): void {
    const [next] = waiting;
    if (next) next();
    else free++;
  }

  return {
    async take(signal) {
      if (signal?.aborted) throw cancelled(signal);
      if (free > 0) free--;
      else await queue(signal);
      return { [Symbol.dispose]: release };
    },
  };

  function queue(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        leave();
        resolve();
      };
      const giveUp = (): void => {
        leave();
        reject(cancelled(signal));
      };
      const leave = (): void => {
        waiting.delete(enter);
        signal?.removeEventListener("abort", giveUp);
      };
      waiting.add(enter);
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }
}

function cancelled(signal: AbortSignal | undefined): RolloutError {
  return new RolloutError("Cancelled", "cancelled by the caller", { cause: signal?.reason });
}
