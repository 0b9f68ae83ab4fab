/**
 * The API server's clock, from the `Date` of its answers: processes on several machines write and compare times by this
 * one clock.
 *
 *   an answer with `Date: D`, in whole seconds, which took t  ->  its clock is ahead of ours by at least D - now, by less than that + 1 s + t
 *     -> the current offset lies within these bounds --> keep it;  otherwise --> take the nearer bound
 *
 * So the next answer corrects a drift, a step of either clock, and a change to another API server behind the same
 * address. Quick answers at different fractions of a second make the offset more precise; slow answers do no harm.
 */
import type { Clock } from "./clock.ts";
import { CLOCK_SKEW_MS } from "./timestamp.ts";

/** Receives the `Date` of each answer of the API server, and the milliseconds from before the request to the answer. */
export type OnDate = (date: string | undefined, tookMs: number) => void;

export interface ServerClock extends Clock {
  /**
   * The API server's time, with an error of at most 1 s plus the duration of the last answer, plus the difference
   * between the clocks of several API servers. The machine's time before the first answer. It may jump in both
   * directions.
   */
  readonly now: () => number;
  /**
   * The same until an answer is older than an earlier one by more than `CLOCK_SKEW_MS`; the machine's time from then on.
   * An answer far ahead shows that both clocks of the machine stood still, or that the clocks of API servers differ.
   */
  readonly wall: () => number;
  readonly follow: OnDate;
}

const DATE_RESOLUTION_MS = 1000;

/** A server clock that follows the machine's clock until the first answer. */
export function createServerClock(machine: Clock): ServerClock {
  let aheadMs = 0;
  let isAnswered = false;
  let isContradicted = false;
  const now = (): number => machine.now() + aheadMs;
  return {
    ...machine,
    now,
    wall: () => (isContradicted ? machine.now() : now()),
    follow(date, tookMs) {
      const at = Date.parse(date ?? "");
      if (Number.isNaN(at)) return;
      const latest = at + DATE_RESOLUTION_MS + Math.ceil(tookMs);
      isContradicted ||= isAnswered && now() - latest > CLOCK_SKEW_MS;
      isAnswered = true;
      aheadMs = Math.min(Math.max(aheadMs, at - machine.now()), latest - machine.now());
    },
  };
}
