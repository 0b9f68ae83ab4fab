/** The most memory that a process ever had. */
import { existsSync, readFileSync } from "node:fs";

/** Megabytes resident at most; NaN where there is no /proc. `resourceUsage()` would count what its parent had as it forked. */
export function readPeakMb(pid: number | "self" = "self"): number {
  const file = `/proc/${pid}/status`;
  if (!existsSync(file)) return Number.NaN;
  return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(file, "utf8"))?.[1]) / 1024;
}
