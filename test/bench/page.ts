/** The table of all figures, and the machine that they are of. */
import { availableParallelism, cpus, totalmem } from "node:os";
import type { Row } from "./row.ts";

export function renderTable(rows: readonly Row[]): string {
  const lines = rows.map(
    ({ what, figure, aim }) => `| ${what} | ${figure} | ${aim ? `${aim.text}${aim.met ? "" : ": **missed**"}` : ""} |`,
  );
  return ["| what | figure | aim |", "|---|---|---|", ...lines].join("\n");
}

/** `load`: runnable processes, over the minute before the first bench. */
export const describeMachine = (now: Date, load: number): string =>
  `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GB, ` +
  `Node ${process.version}, ${now.toISOString().slice(0, 10)}; load average before it began: ${load.toFixed(1)}`;
