/**
 * Keeps the totals of the reconciler on its Lease: written with each renewal, and read by the functions' `/metrics`.
 */
import type { Metrics } from "../../infra/metrics/metrics.ts";
import { addGrowth, formatTotals, parseTotals, TOTALS, type Totals } from "../../infra/metrics/totals.ts";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";

export interface LeaseTotals {
  /** The number of the tick under way among all of the installation. */
  readonly passes: () => number;
  /** When the last tick under an earlier Lease began, milliseconds since the epoch; undefined without one. */
  readonly tickedBefore: number | undefined;
  /**
   * Takes over the process's own metrics after a tick. `startedAt` (milliseconds since the epoch) is undefined if it
   * could not read the cluster.
   */
  readonly record: (startedAt: number | undefined) => Promise<void>;
}

/** `annotations` are those of the Lease that was just taken. Resolves before anything more is counted. */
export async function createLeaseTotals(
  annotations: Map<string, string>,
  metrics: Pick<Metrics, "readKept">,
): Promise<LeaseTotals> {
  const base = parseTotals(annotations.get(TOTALS));
  const start = await metrics.readKept();
  let { passes, lastTick }: Pick<Totals, "passes" | "lastTick"> = base;
  return {
    passes: () => passes + 1,
    tickedBefore: parseTimestamp(base.lastTick ?? ""),
    async record(startedAt) {
      if (startedAt !== undefined) {
        passes++;
        lastTick = formatTimestamp(startedAt);
      }
      const series = addGrowth({ base: base.series, start, now: await metrics.readKept() });
      annotations.set(TOTALS, formatTotals({ passes, ...(lastTick !== undefined && { lastTick }), series }));
    },
  };
}
