/** The ConfigMap that knows when each zone was last scaled down [4.2]: `data[<StatefulSet>] = {"lastDownscaled":"<RFC 3339>"}`. */
import { formatTimestamp } from "../../infra/timestamp.ts";

export type TrackerData = Readonly<Record<string, string>>;

/** The entry of a zone that was scaled down at `ms`. */
export function writeEntry(ms: number): string {
  return JSON.stringify({ lastDownscaled: formatTimestamp(ms) });
}

/** When the zone was last scaled down, as it is written; undefined if it is not known. Throws SyntaxError where the entry is none. */
export function readEntry(data: TrackerData | undefined, zone: string): string | undefined {
  if (data === undefined || !Object.hasOwn(data, zone)) return undefined;
  const entry: unknown = JSON.parse(data[zone] ?? "");
  if (typeof entry !== "object" || entry === null) throw new SyntaxError(`the entry of ${zone} is no object`);
  // Go reads the names of fields whatever their case.
  const [, written] = Object.entries(entry).find(([key]) => key.toLowerCase() === "lastdownscaled") ?? [];
  if (typeof written !== "string") throw new SyntaxError(`the entry of ${zone} has no lastDownscaled`);
  return written;
}
