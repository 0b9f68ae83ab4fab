/** A work queue as Kubernetes' controllers have: each key at most once, a moment after it was asked for, again after an error. */
import type { Clock } from "../clock.ts";
import { ApiError } from "../api-error.ts";
import type { KubeObject } from "../objects.ts";
import type { Store, StoreEvent } from "../store.ts";

/** What a controller has to say; when it is called, and what it cannot do at once, is the queue's business. */
export interface Controller {
  /** From an event to the work that it leads to: what a watch and a scheduler take in real life. */
  readonly reactionMs: number;
  /** The keys to look at after an event. */
  readonly concerns: (event: StoreEvent) => readonly string[];
  /** Does what is to be done about a key by now; answers in how many ms it must be looked at again even if nothing happens. */
  readonly handle: (key: string) => number | void;
}

const FIRST_RETRY_MS = 5;
const LAST_RETRY_MS = 10_000;

/** Handles keys `reactionMs` after they were added, unless they wait already for an earlier moment. API errors are tried again, later and later. */
export function createQueue(clock: Clock, reactionMs: number, handle: Controller["handle"]) {
  const waiting = new Map<string, { at: number; cancel: () => void }>();
  const run = (key: string, failures: number): void => {
    waiting.delete(key);
    try {
      const againMs = handle(key);
      if (typeof againMs === "number") add(key, againMs);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      add(key, Math.min(FIRST_RETRY_MS * 2 ** failures, LAST_RETRY_MS), failures + 1);
    }
  };
  const add = (key: string, afterMs = reactionMs, failures = 0): void => {
    const at = clock.now() + afterMs;
    const earlier = waiting.get(key);
    if (earlier && earlier.at <= at) return;
    earlier?.cancel();
    waiting.set(key, { at, cancel: clock.after(afterMs, () => run(key, failures)) });
  };
  return {
    add,
    stop: () => {
      for (const { cancel } of waiting.values()) cancel();
    },
  };
}

/** The key of an object with a namespace. */
export function keyOf({ metadata: { namespace, name } }: KubeObject): string {
  return `${namespace}/${name}`;
}

export function find(store: Store, resource: string, key: string): KubeObject | undefined {
  const [namespace, name = ""] = key.split("/");
  return store.get(resource, namespace, name);
}
