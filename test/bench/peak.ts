/** The memory of a process, and its CPU time. */
import { existsSync, readdirSync, readFileSync } from "node:fs";

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

/** Milliseconds of CPU that its threads have had, those that are gone left out; it does not tick in steps of 10 ms. */
export function readCpuMs(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  const nanosecondsOf = (task: string): number => {
    try {
      return Number(readFileSync(`${tasks}/${task}/schedstat`, "utf8").split(" ")[0]);
    } catch {
      return 0; // It has ended meanwhile.
    }
  };
  return readdirSync(tasks).reduce((sum, task) => sum + nanosecondsOf(task), 0) / 1e6;
}
