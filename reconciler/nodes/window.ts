/**
 * When updates may start (NR8). The expressions are the original's: second minute hour day month weekday [year], 1 is
 * Sunday and 7 Saturday, day and weekday must both match.
 *
 *   windowed   the seconds run on, as in `* * 2-4 * * *`: open in every second that matches, by the local clock
 *   one-shot   otherwise, as in `0 0 2 * * *`: opens when it fires, and closes when no node is left to be updated
 *
 * An hour that the local clock repeats opens twice, one that it skips never. A one-shot fires once in a repeated hour,
 * and at the end of a skipped one.
 */
import { Cron, type CronOptions } from "croner";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";

export interface WindowSpec {
  readonly cron: string;
  readonly timeZone: string;
  readonly lastStartSeconds: number;
  readonly durationSeconds?: number | undefined;
}

export interface Window extends WindowSpec {
  readonly kind: "windowed" | "one-shot";
  readonly schedule: Cron;
}

export interface Problem {
  readonly problem: string;
}

/** The state of a one-shot's campaign that has to be remembered. */
export interface Campaign {
  readonly cron: string;
  readonly timeZone: string;
  readonly handledThrough: string;
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

export interface Opening {
  readonly open: boolean;
  /** To remember; undefined for a windowed expression. */
  readonly campaign: Campaign | undefined;
}

/**
 * Whether updates may start at `now` (milliseconds). `campaign` is what was remembered: without it, or with another
 * expression, a one-shot waits for its next occurrence.
 */
export function isWindowOpen(window: Window | undefined, campaign: Campaign | undefined, now: number): Opening {
  if (!window) return { open: true, campaign: undefined };
  return window.kind === "windowed"
    ? { open: isWithin(window, now), campaign: undefined }
    : judgeCampaign(window, campaign, now);
}

function isWithin({ schedule, lastStartSeconds }: Window, now: number): boolean {
  const times = lastStartSeconds > 0 ? [now, now + lastStartSeconds * 1000] : [now];
  return times.every((time) => schedule.match(new Date(time)));
}

function judgeCampaign(window: Window, campaign: Campaign | undefined, now: number): Opening {
  const { cron, timeZone } = window;
  if (campaign?.cron !== cron || campaign.timeZone !== timeZone)
    return { open: false, campaign: { cron, timeZone, handledThrough: formatTimestamp(now) } };
  const fired = lastOccurrence(window, now);
  const handled = parseTimestamp(campaign.handledThrough) ?? now;
  // The clock was ahead for a moment.
  if (handled > now) return { open: false, campaign: { ...campaign, handledThrough: formatTimestamp(now) } };
  return { open: fired !== undefined && fired > handled && now < endOf(window, fired), campaign };
}

/** The campaign once no node is left to be updated in it: the next occurrence opens it again. */
export function closeCampaign(campaign: Campaign | undefined, now: number): Campaign | undefined {
  return campaign && { ...campaign, handledThrough: formatTimestamp(now) };
}

function endOf({ durationSeconds, lastStartSeconds }: Window, fired: number): number {
  return durationSeconds === undefined ? Number.POSITIVE_INFINITY : fired + (durationSeconds - lastStartSeconds) * 1000;
}

/** The last occurrence at or before `now`; undefined if there was none. */
function lastOccurrence({ schedule }: Window, now: number): number | undefined {
  const [last] = schedule.previousRuns(1, new Date(now + 1000));
  return last && last.getTime() <= now ? last.getTime() : undefined;
}
