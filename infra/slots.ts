/** Limits concurrency: over all callers (slots), and over the items of a list (visitEach), first come first served. */
import { cancelled } from "./deadline.ts";

interface Slots {
  /**
   * Waits for a free slot; dispose of the result to free it. Callers with different keys take turns; callers with the
   * same key are served in order of arrival. Rejects with `Cancelled` once `signal` fires.
   */
  take(signal?: AbortSignal, key?: string): Promise<Disposable>;
}

export function createSlots(count: number): Slots {
  let free = count;
  /** By key; the key whose turn is next comes first. */
  const waiting = new Map<string, Set<() => void>>();

  function release(): void {
    const [turn] = waiting;
    if (!turn) return void free++;
    const [key, queue] = turn;
    waiting.delete(key);
    waiting.set(key, queue);
    for (const next of queue) return next();
  }

  return {
    async take(signal, key = "") {
      if (signal?.aborted) throw cancelled(signal);
      if (free > 0) free--;
      else await queue(signal, key);
      return { [Symbol.dispose]: release };
    },
  };

  function queue(signal: AbortSignal | undefined, key: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const own = waiting.get(key) ?? new Set();
      const enter = (): void => {
        leave();
        resolve();
      };
      const giveUp = (): void => {
        leave();
        reject(cancelled(signal));
      };
      const leave = (): void => {
        own.delete(enter);
        if (own.size === 0) waiting.delete(key);
        signal?.removeEventListener("abort", giveUp);
      };
      own.add(enter);
      waiting.set(key, own);
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }
}

/**
 * Visits the items in order, at most `atOnce` (finite) at a time, taking each item from the iterable only when its turn
 * comes. After `signal` fires, no further item is taken. A visit that throws rejects at once; no further item is taken
 * then, and visits in progress continue on their own.
 */
export async function visitEach<T>(
  items: Iterable<T>,
  { atOnce, signal }: { readonly atOnce: number; readonly signal?: AbortSignal },
  visit: (item: T) => Promise<void>,
): Promise<void> {
  const queue = takeUntil(items, signal);
  const work = async (): Promise<void> => {
    // An exception here would end the generator, and with it the visits of the other workers.
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
