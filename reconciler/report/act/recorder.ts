/**
 * Limits Kubernetes Events: the same Event is written again only after 5 minutes. Events are written one by one, beside
 * the rollout and without delaying it.
 */
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster, Call } from "../../../infra/kubernetes/cluster.ts";
import type { Log } from "../../../infra/log.ts";
import { type Event, events } from "../../../infra/kubernetes/resources.ts";
import { buildEvent, eventName, type Draft } from "../events.ts";
import { hasCode } from "../../../infra/errors.ts";

const QUIET_MS = 5 * 60_000;
/** The most Events that wait to be written. Further Events are dropped: they must not burden a slow API server. */
const MAX_WAITING = 1000;
const EVENT_MS = 5000;

export interface Recorder {
  readonly emitEvents: (drafts: readonly Draft[]) => void;
  /** Resolves once every emitted Event has been written or has failed. */
  readonly flush: () => Promise<void>;
}

interface RecorderOptions {
  readonly cluster: Cluster;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  /** Logs each Event that could not be written; it is not retried. */
  readonly log: Log;
  /** Names the process in each Event. */
  readonly instance: string;
}

export function createRecorder({ cluster, clock, log, instance }: RecorderOptions): Recorder {
  const written = new Map<string, number>();
  let queue = Promise.resolve();
  let waiting = 0;

  function enqueue(draft: Draft): void {
    const event = buildEvent(draft, clock.now(), instance);
    waiting++;
    queue = queue.then(() => write(event)).then(() => void waiting--);
  }

  async function write(event: Event): Promise<void> {
    await writeEvent(cluster, event, { deadlineMs: EVENT_MS }).catch((error: unknown) =>
      log.warn("an Event could not be written", {
        namespace: event.metadata.namespace,
        object: event.involvedObject?.name,
        reason: event.reason,
        message: event.message,
        error,
      }),
    );
  }

  return {
    emitEvents(drafts) {
      const now = clock.monotonic();
      for (const [name, at] of written) if (now - at >= QUIET_MS) written.delete(name);
      for (const draft of drafts) {
        const name = eventName(draft);
        if (written.has(name) || waiting >= MAX_WAITING) continue;
        written.set(name, now);
        enqueue(draft);
      }
    },
    flush: () => queue,
  };
}

/** Creates the Event, or increases the count of an Event of the same name. Throws the error of the API server. */
async function writeEvent(cluster: Cluster, event: Event, call: Call): Promise<void> {
  const { namespace = "", name = "" } = event.metadata;
  try {
    await cluster.create(events, { namespace, body: event }, call);
  } catch (error) {
    if (!hasCode(error, "AlreadyExists")) throw error;
    const earlier = await cluster.get(events, { namespace, name }, call);
    const again = {
      count: (earlier.count ?? 1) + 1,
      ...(event.message && { message: event.message }),
      ...(event.lastTimestamp && { lastTimestamp: event.lastTimestamp }),
    };
    await cluster.patch(events, { namespace, name, type: "merge", body: again }, call);
  }
}
