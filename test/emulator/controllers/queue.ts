/** A work queue as Kubernetes' controllers have: each key at most once, a moment after it was asked for. */
import type { Clock } from "../clock.ts";
import type { KubeObject } from "../objects.ts";
import type { Store, StoreEvent } from "../store.ts";

/** A controller without its queue. Keys are its own choice; a look at one goes by what is in the store then, not by the event. */
export interface Controller {
  /** From an event to the work that it leads to: what a watch and a scheduler take in real life. */
  readonly reactionMs: number;
  /** The keys to look at after an event. */
  readonly concerns: (event: StoreEvent) => readonly string[];
  /** Does what is to be done about a key by now; answers in how many ms it must be looked at again even if nothing happens. */
  readonly handle: (key: string) => number | void;
}

/** Handles keys `reactionMs` after they were added, or after the time given with them; of a key added often, the earliest moment counts. */
export function createQueue(clock: Clock, reactionMs: number, handle: Controller["handle"]) {
  const waiting = new Map<string, { at: number; cancel: () => void }>();
  const run = (key: string): void => {
    waiting.delete(key);
    const againMs = handle(key);
    if (typeof againMs === "number") add(key, againMs);
  };
  const add = (key: string, afterMs = reactionMs): void => {
    const at = clock.now() + afterMs;
    const earlier = waiting.get(key);
    if (earlier && earlier.at <= at) return;
    earlier?.cancel();
    waiting.set(key, { at, cancel: clock.after(afterMs, () => run(key)) });
  };
  const stop = (): void => {
    for (const { cancel } of waiting.values()) cancel();
  };
  return { add, stop };
}

/** The key of an object with a namespace. */
export function keyOf({ metadata: { namespace, name } }: KubeObject): string {
  return `${namespace}/${name}`;
}

export function find(store: Store, resource: string, key: string): KubeObject | undefined {
  const [namespace, name = ""] = key.split("/");
  return store.get(resource, namespace, name);
}
