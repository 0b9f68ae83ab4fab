/** Shares reads among all viewers: a read of the last 2 s is shown again, so that many viewers cost as much as one. */
import type { Clock } from "../../infra/clock.ts";
import { type Focus, gatherRecords, type GatherOptions } from "./gather.ts";
import { NOTHING, type PageRecords } from "./view/records.ts";

/** Milliseconds; the page asks at the same interval. */
const FRESH_MS = 2000;

interface Reading {
  readonly records: Promise<PageRecords>;
  /** Monotonic milliseconds; Infinity while it is under way. */
  endedAt: number;
}

/** Resolves with the records; never rejects. `focus` is the key of a group that is shown alone. */
export function createReader(
  options: GatherOptions,
  clock: Pick<Clock, "monotonic">,
): (focus: Focus) => Promise<PageRecords> {
  const readings = new Map<Focus, Reading>();
  let last: PageRecords = NOTHING;
  return async (focus) => {
    for (const [key, { endedAt }] of readings) if (clock.monotonic() - endedAt >= FRESH_MS) readings.delete(key);
    const found = readings.get(focus);
    if (found) return await found.records;
    const reading: Reading = { records: gatherRecords(options, focus, last), endedAt: Number.POSITIVE_INFINITY };
    readings.set(focus, reading);
    last = await reading.records;
    reading.endedAt = clock.monotonic();
    return last;
  };
}
