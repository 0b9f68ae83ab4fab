/**
 * Totals of the reconciler that belong to no group: kept as an annotation of its Lease, so that they survive its runs.
 * Pure.
 *
 *   the annotation when the Lease was taken + the growth of the process's own counters since then = the annotation from now on
 */
import type { MetricRow } from "./tables/metric-row.ts";
import { METRICS } from "./tables/metric-table.ts";
import type { Sample, Samples } from "./registry.ts";

/** The annotation. */
export const TOTALS = "zonewise/totals";

export interface Totals {
  /** Ticks that read the cluster. */
  readonly passes: number;
  /** When the last of them began, RFC 3339. */
  readonly lastTick?: string;
  readonly series: Samples;
}

/** Label of series that functions have, too: theirs are without it. */
const OF_RECONCILER = { process: "reconciler" } as const;

/** The metrics that are kept. */
export const KEPT: readonly MetricRow[] = Object.values(METRICS).filter((row: MetricRow) => row.kept !== undefined);

/** The samples of a process as they are kept. */
export const nameProcess = ({ kept }: MetricRow, samples: readonly Sample[]): Sample[] =>
  samples.map(({ labels, value }) => ({ labels: kept === "shared" ? { ...labels, ...OF_RECONCILER } : labels, value }));

/** An annotation that cannot be read counts as none. */
export function parseTotals(text: string | undefined): Totals {
  try {
    const { passes, lastTick, series } = JSON.parse(text ?? "{}") as Partial<Record<keyof Totals, unknown>>;
    const known = Object.entries((series ?? {}) as Record<string, [Sample["labels"], number][]>).filter(([name]) =>
      KEPT.some((row) => row.name === name),
    );
    return {
      passes: typeof passes === "number" ? passes : 0,
      ...(typeof lastTick === "string" && { lastTick }),
      series: new Map(known.map(([name, samples]) => [name, samples.map(([labels, value]) => ({ labels, value }))])),
    };
  } catch {
    return { passes: 0, series: new Map() };
  }
}

export function formatTotals({ passes, lastTick, series }: Totals): string {
  const compact = [...series]
    .filter(([, samples]) => samples.length > 0)
    .map(([name, samples]) => [name, samples.map(({ labels, value }) => [labels, value])] as const);
  return JSON.stringify({ passes, lastTick, series: Object.fromEntries(compact) });
}

export interface Growth {
  /** What was kept when the Lease was taken. */
  readonly base: Samples;
  /** The process's own series then, and now. */
  readonly start: Samples;
  readonly now: Samples;
}

/** Counters grow on; gauges are as the process has measured them, or as they were before it has. */
export function addGrowth({ base, start, now }: Growth): Samples {
  return new Map(
    KEPT.map(({ name, type }) => {
      const [before, first, last] = [base, start, now].map((samples) => samples.get(name) ?? []) as [
        Sample[],
        Sample[],
        Sample[],
      ];
      if (type === "gauge") return [name, last.length > 0 ? last : before];
      const sums = new Map<string, Sample>();
      for (const [samples, sign] of [
        [before, 1],
        [last, 1],
        [first, -1],
      ] as const)
        for (const { labels, value } of samples) {
          const key = keyOf(labels);
          sums.set(key, { labels, value: (sums.get(key)?.value ?? 0) + sign * value });
        }
      return [name, [...sums.values()]];
    }),
  );
}

const keyOf = (labels: Sample["labels"]): string =>
  JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)));
