/** Whether anything has befallen the processes of a kind lately: faults of their calls, deaths, and times of standing still. */
import type { Process } from "../process.ts";

export interface QuietOptions {
  readonly now: () => number;
  readonly processes: () => readonly Pick<Process, "name" | "stoodStillMs">[];
}

/** So long before a time may have begun what still goes on then. */
const GOES_ON_MS = 5000;
const isOfKind = (name: string, kind: string): boolean => name.startsWith(`${kind}-`);

export function createQuiet({ now, processes }: QuietOptions) {
  /** By kind of process. */
  const struckAt = new Map<string, number>();
  return {
    /** A fault at a call site, by its words: "requestLost at webhooks PATCH pods". */
    noteFault: (cell: string): void => void struckAt.set(/ at (\S+) /.exec(cell)?.[1] ?? "", now()),
    noteDeath: (name: string): void => void struckAt.set(name.replace(/-\d+$/, ""), now()),
    /** True if nothing has befallen them since then. */
    isQuiet: (kind: string, since: number): boolean =>
      (struckAt.get(kind) ?? -Infinity) < since - GOES_ON_MS &&
      processes().every(({ name, stoodStillMs }) => !isOfKind(name, kind) || stoodStillMs(since - GOES_ON_MS) === 0),
  };
}
