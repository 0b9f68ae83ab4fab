/** When a cluster is at rest: only a change that a watch tells of, or time, gives a tick something to do. Pure. */
import type { TickResult } from "../model/outcome.ts";

/**
 * Milliseconds between ticks at rest. They resync the groups whose moment has come, do what is due every 30 s (probes of
 * the webhook, pending downscales, ended reservations), and find what a watch has not told, as its connection died
 * unnoticed.
 */
export const REST_MS = 30_000;

/** Milliseconds for which ticks go on after a change: so long ago may be what they read only every 30 s. */
export const AFTER_NEWS_MS = 35_000;

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
