/** Reports outcomes to the log, the metrics and the Events. */
import { type TickResult, holdsOf, isFailure, isLeftOut, type Outcome } from "../../model/outcome.ts";
import type { Clock } from "../../../infra/clock.ts";
import type { Log } from "../../../infra/log.ts";
import type { Metrics } from "../../../infra/metrics/metrics.ts";
import { dedupKeyOf, type Hold } from "../../model/decision.ts";
import { groupKey } from "../../model/zone.ts";
import { draftEvents, buildEvent, eventName, type Draft } from "../events.ts";
import { linesOf, remember, summarizeTick, type GroupMemory, type Seen } from "../log-lines.ts";
import type { Cluster, Call } from "../../../infra/kubernetes/cluster.ts";
import { type Event, events } from "../../../infra/kubernetes/resources.ts";
import { hasCode } from "../../../infra/errors.ts";

interface ReporterOptions {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly recorder: Recorder;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  /** The memory of an earlier run in the same process. */
  readonly memory?: Map<string, GroupMemory>;
  /** The state of a group that is in no memory, as an earlier process saw it; undefined if it is unknown. */
  readonly recall?: (outcome: Outcome) => Seen | undefined;
}

export type Reporter = ReturnType<typeof createReporter>;

export function createReporter(options: ReporterOptions) {
  const { log, metrics, recorder, clock, memory = new Map<string, GroupMemory>(), recall } = options;
  return {
    /** Reports the outcome of one group; `tookMs` milliseconds. */
    report(outcome: Outcome, tookMs: number): void {
      const key = groupKey(outcome);
      const earlier = memory.get(key);
      const now = clock.monotonic();
      const seen = earlier ?? recall?.(outcome);
      const next = remember(seen, outcome, now);
      memory.set(key, next);
      const heldMs = (hold: Hold): number => now - (next.holds.get(dedupKeyOf(hold)) ?? now);
      recorder.emitEvents(draftEvents(outcome, seen, heldMs));
      measure(outcome, tookMs);
      for (const { level, text, fields } of linesOf(outcome, earlier)) log[level](text, fields);
    },
    /** Ends a tick that read the cluster. */
    endTick(result: TickResult, tookMs: number): void {
      const isFailed = result.failures.size > 0 || result.outcomes.some(isFailure);
      metrics.tickDone(isFailed ? "failed" : "ok");
      log.info("tick", { ...summarizeTick(result), ms: Math.round(tookMs) });
      for (const [namespace, error] of result.failures)
        log.error("the namespace could not be read", { namespace, error });
      if (isFailed) return;
      // §1.8: A successful pass removes the memory and the metrics of deleted groups.
      for (const key of memory.keys()) if (!result.groups.has(key)) memory.delete(key);
      metrics.keepGroups(memory.values());
    },
    failTick(error: unknown): void {
      metrics.tickDone("failed");
      log.error("tick failed", { error });
    },
    /** How often in a row the group has been superseded. */
    timesSuperseded: (key: string): number => memory.get(key)?.timesSuperseded ?? 0,
  };

  function measure(outcome: Outcome, tookMs: number): void {
    if (!isLeftOut(outcome)) {
      metrics.reconcileStarted(outcome);
      metrics.reconcileDone(outcome, {
        seconds: tookMs / 1000,
        failed: isFailure(outcome),
        finishedAt: new Date(clock.now()),
      });
    }
    metrics.groupHeld(outcome, holdsOf(outcome)[0]?.reason);
    if (outcome.state === "acted") for (const _ of outcome.effect.replaced) metrics.podReplaced(outcome);
  }
}

// Limits Kubernetes Events: the same Event is written again only after 5 minutes. Events are written one by one, beside
// the rollout and without delaying it.

const QUIET_MS = 5 * 60_000;
/** The most Events that wait to be written. Further Events are dropped: they must not burden a slow API server. */
const MAX_WAITING = 1000;
const EVENT_MS = 5000;

export type Recorder = ReturnType<typeof createRecorder>;

interface RecorderOptions {
  readonly cluster: Cluster;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  /** Logs each Event that could not be written; it is not retried. */
  readonly log: Log;
  /** Names the process in each Event. */
  readonly instance: string;
}

export function createRecorder({ cluster, clock, log, instance }: RecorderOptions) {
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
    emitEvents: (drafts: readonly Draft[]): void => {
      const now = clock.monotonic();
      for (const [name, at] of written) if (now - at >= QUIET_MS) written.delete(name);
      for (const draft of drafts) {
        const name = eventName(draft);
        if (written.has(name) || waiting >= MAX_WAITING) continue;
        written.set(name, now);
        enqueue(draft);
      }
    },
    /** Resolves once every emitted Event has been written or has failed. */
    flush: (): Promise<void> => queue,
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
