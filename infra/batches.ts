/** Items of one key that arrive while others are worked on are worked on together next. No key waits for another. */
import type { Clock } from "./clock.ts";

interface Waiting<Item, Result> extends Pick<PromiseWithResolvers<Result>, "resolve"> {
  readonly item: Item;
}

/** Bounds of the pause after a turn, in milliseconds. */
const MIN_PAUSE_MS = 2;
const MAX_PAUSE_MS = 25;

/** `take` resolves with a result for each item, in their order; it must not reject. */
export function createBatches<Item, Result>(
  take: (key: string, items: readonly Item[]) => Promise<readonly Result[]>,
  clock: Pick<Clock, "monotonic" | "sleep">,
): (key: string, item: Item) => Promise<Result> {
  const queues = new Map<string, Waiting<Item, Result>[]>();

  async function work(key: string, queue: Waiting<Item, Result>[]): Promise<void> {
    queues.set(key, queue);
    // Items of the same moment share the first turn.
    await Promise.resolve();
    while (queue.length > 0) {
      const taken = queue.splice(0);
      const startedAt = clock.monotonic();
      const items = taken.map(({ item }) => item);
      const results = await take(key, items);
      for (const [i, { resolve }] of taken.entries()) resolve(results[i] as Result);
      // Clients that were answered together ask again together: without a pause the first would have a turn alone.
      const tookMs = clock.monotonic() - startedAt;
      if (taken.length > 1) await clock.sleep(Math.min(Math.max(MIN_PAUSE_MS, tookMs / 10), MAX_PAUSE_MS));
    }
    queues.delete(key);
  }

  return (key, item) => {
    const { promise, resolve } = Promise.withResolvers<Result>();
    const queue = queues.get(key);
    if (queue) queue.push({ item, resolve });
    else void work(key, [{ item, resolve }]);
    return promise;
  };
}
