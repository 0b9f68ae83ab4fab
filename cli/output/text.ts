/** Text on a terminal: its style, times as people read them, and no control characters but our own. */
import { styleText } from "node:util";
import { shortDuration } from "../../infra/duration.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";

/** `moving`: no action needed. `waiting`: a user asked for the wait, or time ends it. `bad`: somebody must act. */
export type Tone = "good" | "bad" | "moving" | "waiting" | "warning" | "plain";
type Style = (tone: Tone, text: string) => string;

/** Colours and width of what is displayed. */
export interface Display {
  readonly style: Style;
  /** Characters that a line may have; undefined without a terminal, and if nothing may be left out. */
  readonly width?: () => number | undefined;
}

const COLOURS = { good: "green", bad: "red", moving: "blue", waiting: "gray", warning: "yellow" } as const;

export const plain: Style = (_tone, text) => text;

/** Sets colours regardless of the environment: the caller has checked it. */
export const colourful: Style = (tone, text) =>
  tone === "plain" ? text : styleText(COLOURS[tone], text, { validateStream: false });

/** `4m30s`: the time since `at` (RFC 3339); "" if `at` is no time. */
export function formatAge(at: string | undefined, now: number): string {
  const ms = parseTimestamp(at ?? "");
  return ms === undefined ? "" : shortDuration(now - ms);
}

/** Milliseconds that a due action may be late: a run begins every minute. */
const DUE_MS = 60_000;

/** `in 4m30s`, or `now` once it is due; "" if `at` is no time, or is overdue by more than `DUE_MS`. */
export function untilOf(at: string | undefined, now: number): string {
  const ms = parseTimestamp(at ?? "");
  if (ms === undefined || now - ms > DUE_MS) return "";
  return ms > now ? `in ${shortDuration(ms - now)}` : "now";
}

/** Kept: the colours above, and the redrawing of screen.ts at the start; also line breaks and tabs. */
const OURS = String.raw`^\u001B\[\d+A\u001B\[J|\u001B\[(?:3[12349]|90)m`;
/** Control characters, then characters that are invisible or change the order in which others are read. */
const CONTROL = String.raw`[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u200B-\u200F\u2028-\u202E\u2060-\u2069\uFEFF]`;
const FOUND = new RegExp(`${OURS}|${CONTROL}`, "g");

/**
 * Shows control characters instead of sending them; in a JSON document they keep their meaning. Any user can write
 * messages, annotations and image names, and none of these must control the reader's terminal.
 */
export const showControls = (text: string): string =>
  text.replaceAll(FOUND, (found) =>
    found.length > 1 ? found : `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
