/** What is measured of a list, in the process that reads it. */
import { readPeakMb } from "./peak.ts";

export interface ListFigures {
  readonly seen: number;
  /** From the start of the process until it can ask. */
  readonly loadMs: number;
  readonly listMs: number;
  readonly peakMb: number;
}

/**
 * Runs `list`, which resolves with the number of objects that it saw and kept nothing of, prints the figures and ends
 * the process.
 */
export async function reportList(list: () => Promise<number>): Promise<void> {
  const loadMs = performance.now();
  const seen = await list();
  const figures: ListFigures = { seen, loadMs, listMs: performance.now() - loadMs, peakMb: readPeakMb() };
  process.stdout.write(JSON.stringify(figures), () => process.exit());
}
