/** Keeps Kubernetes Events few: the same one again only after 5 minutes, written one after the other beside the rollout, never in its way. */
import type { Event } from "../infra/resources.ts";
import { buildEvent, eventName, type Draft } from "./events.ts";

const QUIET_MS = 5 * 60_000;
/** Events that wait to be written; further ones are dropped, as an API server that is this far behind has other worries. */
const MOST_WAITING = 1000;

export interface Recorder {
  readonly record: (drafts: readonly Draft[]) => void;
  /** Resolves once all that was recorded has been written or given up. */
  readonly flush: () => Promise<void>;
}

export interface RecorderOptions {
  /** Writes one Event; a rejection is reported and forgotten. */
  readonly write: (event: Event) => Promise<void>;
  readonly onError: (error: unknown, event: Event) => void;
  readonly clock: { now(): number; monotonic(): number };
  /** Names the process in each Event. */
  readonly instance: string;
}

export function createRecorder({ write, onError, clock, instance }: RecorderOptions): Recorder {
  const written = new Map<string, number>();
  let queue = Promise.resolve();
  let waiting = 0;

  function enqueue(draft: Draft): void {
    const event = buildEvent(draft, new Date(clock.now()), instance);
    waiting++;
    queue = queue.then(() => write(event).catch((error: unknown) => onError(error, event))).then(() => void waiting--);
  }

  return {
    record(drafts) {
      const now = clock.monotonic();
      for (const [name, at] of written) if (now - at >= QUIET_MS) written.delete(name);
      for (const draft of drafts) {
        const name = eventName(draft);
        if (written.has(name) || waiting >= MOST_WAITING) continue;
        written.set(name, now);
        enqueue(draft);
      }
    },
    flush: () => queue,
  };
}
