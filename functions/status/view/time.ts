/** Times and ages on the status page. Pure. */
import { h, type ComponentChild } from "preact";
import { parseTimestamp } from "../../../infra/timestamp.ts";

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
] as const;

/** `4 min`: the largest unit that fits at least once; `0 s` below a second. */
function formatAge(ms: number): string {
  const [unit, length] = UNITS.find(([, length]) => Math.abs(ms) >= length) ?? UNITS[3];
  return `${Math.floor(Math.abs(ms) / length)} ${unit}`;
}

/** From this distance on, in milliseconds, a time is shown with its day. */
const SAME_DAY_MS = 20 * 3_600_000;

/** `12:00:05 UTC (4 min ago)`, with the day from 20 h on; text that is no timestamp is shown as it is. */
export function showTime(text: string | undefined, now: number): ComponentChild {
  const at = parseTimestamp(text ?? "");
  if (text === undefined || at === undefined) return text ?? "";
  const age = formatAge(now - at);
  const [day, time] = new Date(at).toISOString().slice(0, 19).split("T");
  const shown = Math.abs(now - at) < SAME_DAY_MS ? `${time} UTC` : `${day} ${time} UTC`;
  return h("time", { dateTime: text }, `${shown} (${at > now ? `in ${age}` : `${age} ago`})`);
}
