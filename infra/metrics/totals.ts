/**
 * Totals of the reconciler that belong to no group: kept as an annotation of its Lease, so that they survive its runs.
 * Pure.
 *
 *   the annotation when the Lease was taken + the growth of the process's own counters since then = the annotation from now on
 */
import { fieldsOf, isFields } from "../json.ts";
import type { MetricRow, Sample, Samples } from "./registry.ts";
import { METRICS } from "./tables/metric-table.ts";

export const TOTALS = "zonewise/totals";

export interface Totals {
  /** Ticks that read the cluster. */
  readonly passes: number;
  /** When the last of them began, RFC 3339. */
  readonly lastTick?: string;
  readonly series: Samples;
}

/** Label of the reconciler's series that functions have, too: the functions' own are without it. */
const OF_RECONCILER = { process: "reconciler" } as const;

export const KEPT: readonly MetricRow[] = Object.values(METRICS).filter((row: MetricRow) => row.kept !== undefined);

export const nameProcess = ({ kept }: MetricRow, samples: readonly Sample[]): Sample[] =>
  samples.map(({ labels, value }) => ({ labels: kept === "shared" ? { ...labels, ...OF_RECONCILER } : labels, value }));

/** An annotation that cannot be read counts as none, and so does a sample: anybody may write a Lease. */
export function parseTotals(text: string | undefined): Totals {
  try {
    const { passes, lastTick, series } = fieldsOf(JSON.parse(text ?? "{}"));
    const kept = fieldsOf(series);
    const known = KEPT.filter(({ name }) => Array.isArray(kept[name]));
    return {
      passes: isNumber(passes) ? passes : 0,
      ...(typeof lastTick === "string" && { lastTick }),
      series: new Map(known.map((row) => [row.name, (kept[row.name] as unknown[]).flatMap(readSample(row))])),
    };
  } catch {
    return { passes: 0, series: new Map() };
  }
}

const isNumber = (value: unknown): value is number => Number.isFinite(value);

/** Reads `[labels, value]`; nothing for a sample that the metric would refuse. */
const readSample = (row: MetricRow) => {
  const known = new Set([...row.labels, ...Object.keys(OF_RECONCILER)]);
  const isLabel = ([name, value]: readonly [string, unknown]): boolean =>
    known.has(name) && (typeof value === "string" || isNumber(value));
  return (sample: unknown): Sample[] => {
    const [labels, value] = Array.isArray(sample) ? (sample as readonly unknown[]) : [];
    if (!isFields(labels) || !isNumber(value) || !Object.entries(labels).every(isLabel)) return [];
    return [{ labels: labels as Sample["labels"], value }];
  };
};

export function formatTotals({ passes, lastTick, series }: Totals): string {
  const compact = [...series]
    .filter(([, samples]) => samples.length > 0)
    .map(([name, samples]) => [name, samples.map(({ labels, value }) => [labels, value])] as const);
  return JSON.stringify({ passes, lastTick, series: Object.fromEntries(compact) });
}

interface Growth {
  /** The kept series when the Lease was taken. */
  readonly base: Samples;
  /** The process's own series then, and now. */
  readonly start: Samples;
  readonly now: Samples;
}

/**
 * Counters continue to grow; gauges have the process's own value, or the kept value before the process has measured
 * one.
 */
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
