/** So many at a time, the rest in the order in which they came: a limit over all callers, and one over the items of a list. */
import { cancelled } from "./deadline.ts";

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

/**
 * Visits the items in their order, at most `atOnce` (finite) at a time, taking each only when its turn comes. Once `signal` fires no further one is
 * taken; nor after the first visit that throws, which rejects at once: those under way are left to themselves.
 */
export async function visitEach<T>(
  items: Iterable<T>,
  { atOnce, signal }: { readonly atOnce: number; readonly signal?: AbortSignal },
  visit: (item: T) => Promise<void>,
): Promise<void> {
  const queue = takeUntil(items, signal);
  const work = async (): Promise<void> => {
    // Whoever throws here ends the generator, and with it the work of the others.
    for (const item of queue) await visit(item);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

function* takeUntil<T>(items: Iterable<T>, signal: AbortSignal | undefined): Generator<T> {
  for (const item of items) {
    if (signal?.aborted) return;
    yield item;
  }
}
