/**
 * Windows by a cron expression: of node updates (NR8) and of rollouts (§1.12). The expressions are those of brupop:
 * second minute hour day month weekday [year], 1 is Sunday and 7 Saturday, day and weekday must both match.
 *
 *   windowed   the seconds run on, as in `* * 2-4 * * *`: open in every second that matches, by the local clock
 *   one-shot   otherwise, as in `0 0 2 * * *`: opens when it fires. Its user decides when it closes: after a duration,
 *              or once a campaign is over
 *
 * A repeated DST hour opens twice; a skipped one never. A one-shot fires once in a repeated hour, and at the end of a
 * skipped one.
 */
import { Cron, type CronOptions } from "croner";

interface WindowSpec {
  readonly cron: string;
  readonly timeZone: string;
  /** Nothing starts in the last seconds of a window. */
  readonly lastStartSeconds: number;
  /** A one-shot ends after that time at the latest. */
  readonly durationSeconds?: number | undefined;
}

export interface Window extends WindowSpec {
  readonly kind: "windowed" | "one-shot";
  readonly schedule: Cron;
}

export interface Problem {
  readonly problem: string;
}

const SHORTHAND = /^@(?:hourly|daily|midnight|weekly|monthly|yearly|annually)$/i;
const RULES = { mode: "6-or-7-parts", domAndDow: true, alternativeWeekdays: true } as const satisfies CronOptions;
/** A moment without a change of clocks in any time zone. */
const SAMPLE = new Date("2026-01-15T12:00:00Z");

/** Reads an expression; a problem if it is none, or if the time zone is unknown. */
export function parseWindow(spec: WindowSpec): Window | Problem {
  const { cron, timeZone: timezone } = spec;
  const shorthand = SHORTHAND.test(cron.trim());
  try {
    const schedule = new Cron(cron, shorthand ? { timezone } : { ...RULES, timezone });
    schedule.match(SAMPLE);
    return { ...spec, schedule, kind: !shorthand && secondsRunOn(cron) ? "windowed" : "one-shot" };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * True if the field of the seconds has two in a row: two samples of the whole expression would depend on when they are
 * taken.
 */
function secondsRunOn(cron: string): boolean {
  const [field = ""] = cron.trim().split(/\s+/);
  const seconds = new Cron(`${field} * * * * *`, { ...RULES, timezone: "UTC" });
  let last = seconds.nextRun(SAMPLE);
  // Every minute is like the first.
  for (const end = SAMPLE.getTime() + 120_000; last && last.getTime() < end;) {
    const next = seconds.nextRun(last);
    if (next && next.getTime() - last.getTime() === 1000) return true;
    last = next;
  }
  return false;
}

/** True if the windowed expression matches at `now` (milliseconds), and goes on matching for `lastStartSeconds`. */
export function isWithin({ schedule, lastStartSeconds }: Window, now: number): boolean {
  const times = lastStartSeconds > 0 ? [now, now + lastStartSeconds * 1000] : [now];
  return times.every((time) => schedule.match(new Date(time)));
}

/** When a one-shot that fired at `fired` ends. */
export function endOf({ durationSeconds, lastStartSeconds }: Window, fired: number): number {
  return durationSeconds === undefined ? Number.POSITIVE_INFINITY : fired + (durationSeconds - lastStartSeconds) * 1000;
}

/** The last occurrence at or before `now`; undefined if there was none. */
export function lastOccurrence({ schedule }: Window, now: number): number | undefined {
  const [last] = schedule.previousRuns(1, new Date(now + 1000));
  return last && last.getTime() <= now ? last.getTime() : undefined;
}

/** The next occurrence after `now`: the start of a closed window; undefined if there is none. */
export const nextOccurrence = ({ schedule }: Window, now: number): number | undefined =>
  schedule.nextRun(new Date(now))?.getTime();
