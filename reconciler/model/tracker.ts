/** The zone tracker [4.2]: a ConfigMap with an entry `{"lastDownscaled": "<RFC 3339>"}` for each StatefulSet, by its name. */
import { formatTimestamp } from "../../infra/timestamp.ts";

/** The timestamps as written, by StatefulSet; an entry that cannot be read stands for itself, so that it is refused as a timestamp. */
export function readTracker(data: Readonly<Record<string, string>> | undefined): Map<string, string> {
  return new Map(Object.entries(data ?? {}).map(([name, entry]) => [name, readEntry(entry) ?? entry]));
}

/** The entry of a StatefulSet that was scaled down at `ms`. */
export function trackerEntry(ms: number): string {
  return JSON.stringify({ lastDownscaled: formatTimestamp(ms) });
}

// Go matches the keys of JSON without regard for case.
function readEntry(entry: string): string | undefined {
  try {
    const fields = Object.entries(JSON.parse(entry) as Record<string, unknown>);
    const value = fields.find(([key]) => key.toLowerCase() === "lastdownscaled")?.[1];
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
