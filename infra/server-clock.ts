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

/**
 * The clock of a Lease's holder and of the processes that wait for it. If the machine's clock is set, a holder must not
 * write too early a time, and a challenger must not judge by too late a time: so both use the wall clock and the
 * monotonic clock, each corrected by the API server's answers.
 */
export interface LeaseClock extends Clock {
  /** The API server's time for `renewTime`: the later one. */
  readonly latest?: () => number;
  /**
   * The API server's time for judging the `renewTime` of others: the earlier one; undefined before the first answer,
   * and once answers have contradicted each other.
   */
  readonly earliest?: () => number | undefined;
}

export interface ServerClock extends Clock {
  /**
   * The API server's time, with an error of at most 1 s plus the duration of the last answer, plus the difference
   * between the clocks of several API servers. The machine's time before the first answer. It may jump in both
   * directions.
   */
  readonly now: () => number;
  readonly follow: OnDate;
  /**
   * The same until an answer is older than an earlier one by more than `CLOCK_SKEW_MS`; the machine's time from then
   * on. For periods that must not be exceeded: an answer far ahead shows that both clocks of the machine stopped, or
   * that the clocks of API servers differ.
   */
  readonly leaseClock: LeaseClock;
}

const DATE_RESOLUTION_MS = 1000;

/** A server clock that follows the machine's clock until the first answer. */
export function createServerClock(machine: Clock): ServerClock {
  const wall = followServer(machine.now);
  const steady = followServer(machine.monotonic);
  let isAnswered = false;
  let isContradicted = false;
  return {
    ...machine,
    now: wall.now,
    leaseClock: {
      ...machine,
      now: () => (isContradicted ? machine.now() : wall.now()),
      latest: () => Math.max(wall.now(), steady.now()),
      earliest: () => (isAnswered && !isContradicted ? Math.min(wall.now(), steady.now()) : undefined),
    },
    follow(date, tookMs) {
      const at = Date.parse(date ?? "");
      if (Number.isNaN(at)) return;
      const uncertaintyMs = DATE_RESOLUTION_MS + Math.ceil(tookMs);
      isContradicted ||= isAnswered && wall.now() - (at + uncertaintyMs) > CLOCK_SKEW_MS;
      isAnswered = true;
      for (const clock of [wall, steady]) clock.follow(at, at + uncertaintyMs);
    },
  };
}

/**
 * One of the machine's clocks, and the time by which the API server's clock is ahead of it: the time of an answer lies
 * between `from` and `to`.
 */
function followServer(read: () => number) {
  let aheadMs = 0;
  return {
    now: () => read() + aheadMs,
    follow(from: number, to: number): void {
      aheadMs = Math.min(Math.max(aheadMs, from - read()), to - read());
    },
  };
}
