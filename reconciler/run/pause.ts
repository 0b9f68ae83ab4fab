/**
 * The pause between two ticks: none after a change of our own; otherwise the interval, and at rest longer. It ends early
 * once a watch tells of a change, a check is due, or a step that outlasted its tick ends with news.
 */
import type { Context } from "../../infra/kubernetes/context.ts";
import type { TickResult } from "../model/outcome.ts";
import type { StepResult, Steps } from "./tick.ts";
import type { TickWatch } from "./watch.ts";

/**
 * Milliseconds between ticks at rest: longer than until the next run, even if its pod starts late, so that each run ticks
 * once. That tick resyncs the groups whose moment has come, does what is due meanwhile (probes of the webhook, ended
 * reservations), and finds what a watch has not told, as its connection died unnoticed.
 */
export const REST_MS = 90_000;

/** Milliseconds for which ticks continue after a change: what they read only every 30 s may be that old. */
const AFTER_NEWS_MS = 35_000;

/** The pause before a check that is due already, as the tick has not reached it. */
const OVERDUE_PAUSE_MS = 1000;

/**
 * True if a watch tells of all that may change what this tick has found: no rollout waits for pods or time, no zone mirrors
 * a resource, which is not watched, and nothing was left out.
 */
export function isAtRest(result: TickResult): boolean {
  const { groups, outcomes, failures, skipped, underWay, acted, phasedLists = [], phasedFailed } = result;
  if (acted || phasedFailed === true || failures.size > 0 || skipped > 0 || underWay > 0) return false;
  if (phasedLists.some(({ targets }) => targets.length > 0)) return false;
  const settled = outcomes.filter(({ state, scalingHolds }) => state === "settled" && scalingHolds.length === 0);
  if (settled.length < outcomes.length || outcomes.length < groups.size) return false;
  return [...groups.values()].flat().every(({ scaling }) => scaling.mirror === undefined);
}

/** What pauses need of the time under one Lease. */
export interface Pausing {
  readonly context: Context;
  readonly changes: TickWatch;
  readonly steps: Steps;
  /** When something last changed that ticks may still have to read, by the monotonic clock. */
  newsAt: number;
}

interface Ticked {
  readonly result: TickResult | undefined;
  /** The cluster was changed after the tick, as nodes are updated. */
  readonly changed: boolean;
  readonly atRest: boolean;
}

export async function pause(session: Pausing, { result, changed, atRest }: Ticked, intervalMs: number): Promise<void> {
  const { changes, steps, context } = session;
  const { clock } = context;
  if (!atRest) session.newsAt = clock.monotonic();
  if (changed || result?.acted) return;
  const over = new AbortController();
  const untilDue = (dueAt: number): number => Math.max(dueAt - clock.now(), 0) || OVERDUE_PAUSE_MS;
  steps.onEnd = (late) => {
    if (needsTick(late)) changes.wake();
    else if (late.dueAt !== undefined)
      void clock.sleep(untilDue(late.dueAt), over.signal).then(() => over.signal.aborted || changes.wake());
  };
  // Those that have ended since the tick did.
  steps.ended.forEach(steps.onEnd);
  const isLong = atRest && clock.monotonic() - session.newsAt >= AFTER_NEWS_MS;
  const mostMs = Math.min(
    isLong ? Math.max(REST_MS, intervalMs) : intervalMs,
    untilDue(result?.nextCheckAt ?? Infinity),
  );
  if (await waitForChange(session, mostMs, intervalMs)) session.newsAt = clock.monotonic();
  steps.onEnd = () => {};
  over.abort();
}

/**
 * Waits for a change, for `mostMs` at most; true if there was one. In steps of the interval: without its watches, a run
 * does not rest.
 */
async function waitForChange({ context, changes }: Pausing, mostMs: number, intervalMs: number): Promise<boolean> {
  const { clock, stop } = context;
  const since = clock.monotonic();
  const leftMs = (): number => mostMs - (clock.monotonic() - since);
  do if (await changes.wait(Math.min(intervalMs, leftMs()))) return true;
  while (leftMs() > 0 && changes.isWatching() && !stop.aborted);
  return false;
}

/**
 * True if the step has changed the cluster, or decided by outdated facts, or failed: the tick that takes it over need
 * not wait.
 */
const needsTick = ({ acted, failed, outcome }: StepResult): boolean =>
  acted || failed === true || outcome?.state === "superseded";
