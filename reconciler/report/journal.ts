/** Tells what happened: the same outcome feeds the log, the metrics and the Events. Remembers a little of each group, as a hint only. */
import type { Log } from "../../infra/log.ts";
import type { Metrics } from "../../infra/metrics/metrics.ts";
import { draftEvents, type GroupMemory } from "./events.ts";
import { dedupKeyOf, factsOf } from "../model/decision.ts";
import { holdsOf, isFailure, type Outcome } from "./outcome.ts";
import { groupKey } from "../model/zone.ts";
import type { Recorder } from "./recorder.ts";
import type { TickResult } from "../tick.ts";

export interface JournalOptions {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly recorder: Recorder;
  readonly clock: { now(): number; monotonic(): number };
  /** What was remembered by an earlier run in the same process. */
  readonly memory?: Map<string, GroupMemory>;
}

export interface Journal {
  /** Enters the outcome of one group; `tookMs` milliseconds. */
  readonly enter: (outcome: Outcome, tookMs: number) => void;
  /** Ends a tick that read the cluster: the summary line. */
  readonly close: (result: TickResult, tookMs: number) => void;
  /** Ends a tick that could not. */
  readonly fail: (error: unknown) => void;
  /** How often in a row the group has been outrun. */
  readonly timesOutrun: (key: string) => number;
}

/** Waits that the summary of a tick spells out; their number is told in any case. */
const MOST_WAITS = 20;

export function createJournal({ log, metrics, recorder, clock, memory = new Map() }: JournalOptions): Journal {
  return {
    enter(outcome, tookMs) {
      const key = groupKey(outcome);
      const earlier = memory.get(key);
      const now = clock.monotonic();
      const { namespace, group, state } = outcome;
      const { level, text, fields } = tell(outcome);
      const same = earlier?.text === text;
      const holds = new Map(holdsOf(outcome).map((hold) => [dedupKeyOf(hold), earlier?.holds.get(dedupKeyOf(hold)) ?? now]));
      recorder.record(draftEvents(outcome, earlier, (hold) => now - (holds.get(dedupKeyOf(hold)) ?? now)));
      const replaced = outcome.state === "acted" && outcome.effect.replaced.length > 0;
      const rolling = replaced || (state !== "settled" && earlier?.rolling === true);
      const notes = outcome.notes.map((note) => note.text);
      memory.set(key, { namespace, group, text, notes, timesOutrun: state === "outrun" ? outcome.times : 0, holds, rolling });
      metrics.reconcileStarted(outcome);
      metrics.reconcileDone(outcome, { seconds: tookMs / 1000, failed: isFailure(outcome), finishedAt: new Date(clock.now()) });
      metrics.groupBlocked(outcome, holdsOf(outcome)[0]?.reason);
      if (outcome.state === "acted") for (const _ of outcome.effect.replaced) metrics.podReplaced(outcome);
      for (const wait of outcome.waits)
        if (!earlier?.holds.has(dedupKeyOf(wait)))
          log[factsOf(wait.reason).needsFix ? "warn" : "info"](wait.message, { namespace, group, reason: wait.reason });
      for (const note of outcome.notes) if (!earlier?.notes.includes(note.text)) log[note.level](note.text, { namespace, group });
      if (same && state !== "acted") return;
      log[level](text, { namespace, group, state, ...fields });
    },
    close(result, tookMs) {
      const counts = { settled: 0, held: 0, acted: 0, outrun: 0, failed: 0 };
      let replaced = 0;
      for (const outcome of result.outcomes) {
        counts[isFailure(outcome) ? "failed" : outcome.state]++;
        if (outcome.state === "acted") replaced += outcome.effect.replaced.length;
      }
      const waits = result.outcomes.flatMap((outcome) => outcome.waits.map(({ message }) => message));
      metrics.tickDone(counts.failed > 0 || result.failures.size > 0 ? "failed" : "ok");
      log.info("tick", {
        groups: result.outcomes.length,
        ...counts,
        replaced,
        ...(result.skipped > 0 && { skipped: result.skipped }),
        ...(waits.length > 0 && { waiting: waits.length, waits: waits.slice(0, MOST_WAITS) }),
        ms: Math.round(tookMs),
      });
      for (const [namespace, error] of result.failures) log.error("the namespace could not be read", { namespace, error });
      if (counts.failed > 0 || result.failures.size > 0) return;
      // §1.8: After a fully successful pass, what is said of groups that are gone goes too.
      for (const key of memory.keys()) if (!result.groups.has(key)) memory.delete(key);
      metrics.keepGroups(memory.values());
    },
    fail(error) {
      metrics.tickDone("failed");
      log.error("tick failed", { error });
    },
    timesOutrun: (key) => memory.get(key)?.timesOutrun ?? 0,
  };
}

interface Telling {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly text: string;
  readonly fields?: Record<string, unknown>;
}

function tell(outcome: Outcome): Telling {
  switch (outcome.state) {
    case "settled":
      return { level: "debug", text: "all zones are updated and ready" };
    case "held":
      return { level: isFailure(outcome) ? "error" : "info", text: outcome.hold.message, fields: { reason: outcome.hold.reason } };
    case "acted": {
      const { decision, effect } = outcome;
      const pods = effect.replaced.map((pod) => pod.name);
      return {
        level: "info",
        text: decision.message,
        fields: {
          action: decision.action,
          zone: decision.zone.name,
          ...(pods.length > 0 && { pods }),
          ...(effect.stopped !== undefined && { stopped: effect.stopped }),
        },
      };
    }
    case "outrun":
      return { level: "warn", text: "something changed meanwhile; deciding anew", fields: { error: outcome.error } };
    case "failed":
      return { level: "error", text: "the group could not be reconciled", fields: { error: outcome.error } };
    default:
      return outcome satisfies never;
  }
}
