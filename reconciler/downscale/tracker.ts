/**
 * The zone tracker (§4.2): a ConfigMap with an entry `{"lastDownscaled": "<RFC 3339>"}` for each StatefulSet, by its
 * name.
 */
import { ownValue } from "../../infra/json.ts";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";

/**
 * The timestamps as written, by StatefulSet; an entry that cannot be read is returned as it is, so that it is refused
 * as a timestamp.
 */
export function readTracker(data: Readonly<Record<string, string>> | undefined): Map<string, string> {
  return new Map(Object.entries(data ?? {}).map(([name, entry]) => [name, readEntry(entry) ?? entry]));
}

/**
 * The entry of a StatefulSet that is scaled down at `ms`. `before` is the time that it replaces ("" for none), in case
 * this one never happens.
 */
export function trackerEntry(ms: number, before?: string): string {
  return JSON.stringify({ lastDownscaled: formatTimestamp(ms), ...(before !== undefined && { before }) });
}

/**
 * The time that the entry has replaced, "" for none, if it was written at `since` (RFC 3339) or later; undefined
 * otherwise.
 */
export function timeBefore(entry: string | undefined, since: string): string | undefined {
  const at = parseTimestamp(readEntry(entry ?? "") ?? "");
  if (at === undefined || at < (parseTimestamp(since) ?? Number.POSITIVE_INFINITY)) return undefined;
  return readEntry(entry ?? "", "before");
}

/** The data without an entry whose downscale, admitted at `since`, never happened; undefined if there is none. */
export function restoreEntry(data: Readonly<Record<string, string>> | undefined, name: string, since: string) {
  const before = timeBefore(ownValue(data, name), since);
  if (before === undefined) return undefined;
  const { [name]: _, ...others } = data ?? {};
  return before === "" ? others : { ...others, [name]: JSON.stringify({ lastDownscaled: before }) };
}

// Go matches the keys of JSON without regard for case.
function readEntry(entry: string, wanted: "lastdownscaled" | "before" = "lastdownscaled"): string | undefined {
  try {
    const fields = Object.entries(JSON.parse(entry) as Record<string, unknown>);
    const value = fields.find(([key]) => key.toLowerCase() === wanted)?.[1];
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
