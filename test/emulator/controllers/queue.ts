/** A work queue as Kubernetes' controllers have: each key at most once, a moment after it was asked for, again after an error. */
import type { Clock } from "../clock.ts";
import { ApiError } from "../api-error.ts";

export interface WorkQueue {
  /** Has `key` handled `afterMs` from now, or earlier if it waits already for an earlier moment. */
  add(key: string, afterMs?: number): void;
  stop(): void;
}

const FIRST_RETRY_MS = 5;
const LAST_RETRY_MS = 10_000;

/** Handles keys `reactionMs` after they were added: what a watch and a scheduler take in real life. API errors are tried again, later and later. */
export function createQueue(clock: Clock, reactionMs: number, handle: (key: string) => void): WorkQueue {
  const waiting = new Map<string, { at: number; cancel: () => void }>();
  const failures = new Map<string, number>();
  const run = (key: string): void => {
    waiting.delete(key);
    try {
      handle(key);
      failures.delete(key);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const count = failures.get(key) ?? 0;
      failures.set(key, count + 1);
      add(key, Math.min(FIRST_RETRY_MS * 2 ** count, LAST_RETRY_MS));
    }
  };
  const add = (key: string, afterMs = reactionMs): void => {
    const at = clock.now() + afterMs;
    const earlier = waiting.get(key);
    if (earlier && earlier.at <= at) return;
    earlier?.cancel();
    waiting.set(key, { at, cancel: clock.after(afterMs, () => run(key)) });
  };
  return {
    add,
    stop: () => {
      for (const { cancel } of waiting.values()) cancel();
      waiting.clear();
    },
  };
}
