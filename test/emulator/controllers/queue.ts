/** A work queue as in Kubernetes' controllers: it holds each key at most once. */
import type { Clock } from "../clock.ts";
import type { KubeObject } from "../objects.ts";
import type { Store, StoreEvent } from "../store.ts";

/** A controller without its queue. It chooses its keys. */
export interface Controller {
  /** The delay between an event and its reconciliation, as on a real cluster. */
  readonly latencyMs: number;
  /** The keys to reconcile after an event. */
  readonly keysFor: (event: StoreEvent) => readonly string[];
  /**
   * Reconciles a key with the store's current state. Returns after how many ms to requeue the key, if at all.
   */
  readonly reconcile: (key: string) => number | void;
}

/**
 * Reconciles each key `latencyMs` (or `afterMs`) after it was added; for a key added repeatedly the earliest
 * time counts.
 */
export function createQueue(clock: Clock, latencyMs: number, reconcile: Controller["reconcile"]) {
  const waiting = new Map<string, { at: number; cancel: () => void }>();
  const run = (key: string): void => {
    waiting.delete(key);
    const requeueAfterMs = reconcile(key);
    if (typeof requeueAfterMs === "number") add(key, requeueAfterMs);
  };
  const add = (key: string, afterMs = latencyMs): void => {
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

/** The key of a namespaced object. */
export function keyOf({ metadata: { namespace, name } }: KubeObject): string {
  return `${namespace}/${name}`;
}

export function getByKey(store: Store, resource: string, key: string): KubeObject | undefined {
  const [namespace, name = ""] = key.split("/");
  return store.get(resource, namespace, name);
}
