/**
 * The API server's clock, as its answers tell it: what processes of several machines write down and judge goes by this one clock.
 *
 *   an answer with `Date: D`, in whole seconds, which took t  ->  its clock is ahead of ours by at least D - now, by less than that + 1 s + t
 *     -> what was assumed so far is within --> it stays;  it is not --> the nearer bound
 *
 * So it follows a drift, a step of either clock, and another API server behind the same address, with the next answer; quick answers at
 * various moments of a second make it finer, slow ones do no harm.
 */
import type { Clock } from "./clock.ts";

/** Told of each answer of the API server: its `Date`, and the milliseconds from before the request until it was there. */
export type OnDate = (date: string | undefined, tookMs: number) => void;

export interface ServerClock extends Clock {
  /**
   * The API server's time, off by 1 s and the time that the last answer took at most; the machine's before the first answer. It may jump,
   * both ways. Where several API servers answer, by the difference of their clocks as well.
   */
  readonly now: () => number;
  readonly follow: OnDate;
  /**
   * The same until an answer is older than one before it by more than `CLOCK_SKEW_MS`; from then on the machine's. For spans that must not be
   * outlived: an answer that is far ahead shows that both clocks of the machine stood still, or that the clocks of API servers differ.
   */
  readonly leaseClock: Clock;
}

const DATE_RESOLUTION_MS = 1000;

/**
 * By how much two processes may judge the same moment differently: a second each, answers that take half a second, and API servers whose
 * clocks are 2 s apart. A span that one process writes down and another waits for is longer by this.
 */
export const CLOCK_SKEW_MS = 5000;

/** Begins with the machine's own time. */
export function createServerClock(machine: Clock): ServerClock {
  let aheadMs = 0;
  let isAnswered = false;
  let isContradicted = false;
  return {
    ...machine,
    now: () => machine.now() + aheadMs,
    leaseClock: { ...machine, now: () => machine.now() + (isContradicted ? 0 : aheadMs) },
    follow(date, tookMs) {
      const least = Date.parse(date ?? "") - machine.now();
      if (Number.isNaN(least)) return;
      const most = least + DATE_RESOLUTION_MS + Math.ceil(tookMs);
      isContradicted ||= isAnswered && aheadMs - most > CLOCK_SKEW_MS;
      isAnswered = true;
      aheadMs = Math.min(Math.max(aheadMs, least), most);
    },
  };
}
