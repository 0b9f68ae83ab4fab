/** The memory of a process. */
import { existsSync, readFileSync } from "node:fs";

/**
 * The peak resident set in MB; NaN without /proc. `resourceUsage()` would include the parent's memory at the
 * fork.
 */
export function readPeakMb(pid: number | "self" = "self"): number {
  const file = `/proc/${pid}/status`;
  if (!existsSync(file)) return Number.NaN;
  return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(file, "utf8"))?.[1]) / 1024;
}

/** The resident set in MB, at once. */
export function readResidentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}
