/** The campaign of a one-shot window: it opens when it fires, and closes when no node is left to be updated (NR8). */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { endOf, isWithin, lastOccurrence, type Window } from "../model/window.ts";

/** The state of a one-shot's campaign that has to be remembered. */
interface Campaign {
  readonly cron: string;
  readonly timeZone: string;
  readonly handledThrough: string;
}

export interface Opening {
  readonly open: boolean;
  /** To remember; undefined for a windowed expression. */
  readonly campaign: Campaign | undefined;
}

/**
 * Decides whether updates may start at `now` (milliseconds). `campaign` is the remembered one: without it, or with
 * another expression, a one-shot waits for its next occurrence.
 */
export function isWindowOpen(window: Window | undefined, campaign: Campaign | undefined, now: number): Opening {
  if (!window) return { open: true, campaign: undefined };
  return window.kind === "windowed"
    ? { open: isWithin(window, now), campaign: undefined }
    : judgeCampaign(window, campaign, now);
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
