/**
 * Windows by a cron expression: of node updates and of rollouts (§1.12). The expressions are those of brupop:
 * second minute hour day month weekday [year], 1 is Sunday and 7 Saturday, day and weekday must both match.
 *
 *   windowed   the seconds run on, as in `* * 2-4 * * *`: open in every second that matches, by the local clock
 *   one-shot   otherwise, as in `0 0 2 * * *`: opens when it fires. Its user decides when it closes: after a duration,
 *              or once a campaign is over
 *
 * A repeated DST hour opens twice; a skipped one never. A one-shot fires once in a repeated hour, and at the end of a
 * skipped one.
 *
 * Occurrences are searched from 2 years before a time to 10 years after it, and by quarters of an hour. croner walks
 * up to 10,000 years, second by second where a local hour is skipped: an expression that never matches would block the
 * process, for minutes.
 */
import { Cron, type CronOptions, CronPattern } from "croner";
import { once } from "../../infra/once.ts";

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
  /** Tells whether a time matches. To find one that does, use `lastOccurrence` and `nextOccurrence`. */
  readonly schedule: Cron;
  /** The seconds of a minute that match, in order. */
  readonly seconds: readonly number[];
  /** True if croner finds occurrences themselves, otherwise the quarters of an hour in which there are some. */
  readonly isExact: boolean;
  /** The search around a year; undefined if the expression names none of these years. */
  readonly around: (year: number) => Cron | undefined;
}

export interface Problem {
  readonly problem: string;
}

const SHORTHAND = /^@(?:hourly|daily|midnight|weekly|monthly|yearly|annually)$/i;
const RULES = { mode: "6-or-7-parts", domAndDow: true, alternativeWeekdays: true } as const satisfies CronOptions;
/** A moment without a change of clocks in any time zone. */
const SAMPLE = new Date("2026-01-15T12:00:00Z");

/** More than the years from a leap day to the next one. */
const YEARS_AHEAD = 10;
const YEARS_BACK = 2;
const MINUTE_MS = 60_000;
/** Clocks change at quarters of an hour, and time zones differ by quarters: within one the local clock runs on. */
const QUARTER = 15;
const QUARTER_MS = QUARTER * MINUTE_MS;

/** Reads an expression; a problem if it is none, or if the time zone is unknown. */
export function parseWindow(spec: WindowSpec): Window | Problem {
  const { cron, timeZone: timezone } = spec;
  const shorthand = SHORTHAND.test(cron.trim());
  const rules = shorthand ? { timezone } : { ...RULES, timezone };
  try {
    const schedule = new Cron(cron, rules);
    schedule.match(SAMPLE);
    const pattern = new CronPattern(cron, timezone, shorthand ? {} : RULES);
    const seconds = valuesOf(pattern.second, 0, 59);
    // Shorthands match in each year.
    const around = (year: number): Cron | undefined => (shorthand ? schedule : narrow(spec, pattern, year));
    return {
      ...spec,
      schedule,
      seconds,
      isExact: shorthand || pattern.isFixedTime,
      around: once(around),
      kind: !shorthand && seconds.some((second) => seconds.includes((second + 1) % 60)) ? "windowed" : "one-shot",
    };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}
/** The indexes from `from` to `to` that are set. */
const valuesOf = (field: readonly number[], from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i).filter((value) => field[value]);

function narrow({ cron, timeZone: timezone }: WindowSpec, pattern: CronPattern, year: number): Cron | undefined {
  const years = valuesOf(pattern.year, year - YEARS_BACK, year + YEARS_AHEAD);
  if (years.length === 0) return undefined;
  const [second, minute, ...rest] = cron.trim().split(/\s+/).slice(0, 6);
  const quarters = [0, 15, 30, 45].filter((from) => valuesOf(pattern.minute, from, from + QUARTER - 1).length > 0);
  // Not a plain 0: croner moves a fixed time out of an hour that is skipped.
  const start = pattern.isFixedTime ? [second, minute] : ["*/60", quarters.join(",")];
  return new Cron([...start, ...rest, years.join(",")].join(" "), { ...RULES, timezone });
}

/** True if the windowed expression matches at `now` (milliseconds), and still matches for `lastStartSeconds`. */
export function isWithin({ schedule, lastStartSeconds }: Window, now: number): boolean {
  const times = lastStartSeconds > 0 ? [now, now + lastStartSeconds * 1000] : [now];
  return times.every((time) => schedule.match(new Date(time)));
}

/** When a one-shot that fired at `fired` ends. */
export function endOf({ durationSeconds, lastStartSeconds }: Window, fired: number): number {
  return durationSeconds === undefined ? Number.POSITIVE_INFINITY : fired + (durationSeconds - lastStartSeconds) * 1000;
}

const searchAt = ({ around }: Window, now: number): Cron | undefined => around(new Date(now).getUTCFullYear());

const quarterOf = (time: number): number => Math.floor(time / QUARTER_MS) * QUARTER_MS;

/** The occurrences in a quarter of an hour, in order. */
function occurrencesIn({ schedule, seconds }: Window, quarter: number): number[] {
  const [first = 0] = seconds;
  return Array.from({ length: QUARTER }, (_, i) => quarter + i * MINUTE_MS)
    .filter((minute) => schedule.match(new Date(minute + first * 1000)))
    .flatMap((minute) => seconds.map((second) => minute + second * 1000));
}

/** The last occurrence at or before `now`; undefined if there was none in the last years. */
export function lastOccurrence(window: Window, now: number): number | undefined {
  const search = searchAt(window, now);
  if (window.isExact) {
    // That before the next second.
    const [last] = search?.previousRuns(1, new Date(Math.floor(now / 1000) * 1000 + 1000)) ?? [];
    return last?.getTime();
  }
  const quarter = quarterOf(now);
  const here = occurrencesIn(window, quarter).findLast((time) => time <= now);
  if (here !== undefined) return here;
  const [last] = search?.previousRuns(1, new Date(quarter)) ?? [];
  return last && occurrencesIn(window, last.getTime()).at(-1);
}

/** The next occurrence after `now`: the start of a closed window; undefined if there is none in the next years. */
export function nextOccurrence(window: Window, now: number): number | undefined {
  const search = searchAt(window, now);
  if (window.isExact) return search?.nextRun(new Date(now))?.getTime();
  const quarter = quarterOf(now);
  const here = occurrencesIn(window, quarter).find((time) => time > now);
  if (here !== undefined) return here;
  const next = search?.nextRun(new Date(quarter));
  return next ? occurrencesIn(window, next.getTime())[0] : undefined;
}
