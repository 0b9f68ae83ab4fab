/** Reports outcomes to the log, the metrics and the Events. */
import { type TickResult, holdsOf, isFailure, isLeftOut, type Outcome } from "../../model/outcome.ts";
import type { Clock } from "../../../infra/clock.ts";
import type { Log } from "../../../infra/log.ts";
import type { Metrics } from "../../../infra/metrics/metrics.ts";
import { dedupKeyOf, type Hold } from "../../model/decision.ts";
import { groupKey } from "../../model/zone.ts";
import { draftEvents } from "../events.ts";
import { linesOf, summarizeTick, remember, type GroupMemory, type Seen } from "../log-lines.ts";
import type { Recorder } from "./recorder.ts";

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

export interface Reporter {
  /** Reports the outcome of one group; `tookMs` milliseconds. */
  readonly report: (outcome: Outcome, tookMs: number) => void;
  /** Ends a tick that read the cluster: the summary line. */
  readonly endTick: (result: TickResult, tookMs: number) => void;
  /** Ends a tick that could not read the cluster. */
  readonly failTick: (error: unknown) => void;
  /** How often in a row the group has been superseded. */
  readonly timesSuperseded: (key: string) => number;
}

export function createReporter(options: ReporterOptions): Reporter {
  const { log, metrics, recorder, clock, memory = new Map<string, GroupMemory>(), recall } = options;
  return {
    report(outcome, tookMs) {
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
    endTick(result, tookMs) {
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
    failTick(error) {
      metrics.tickDone("failed");
      log.error("tick failed", { error });
    },
    timesSuperseded: (key) => memory.get(key)?.timesSuperseded ?? 0,
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
