/** Which planted bugs would differ from the product in a history, though none of them is planted in it. */
import { isDeepStrictEqual } from "node:util";
import { type Change as Bug, changeSources } from "../load.ts";
import { compareBugs } from "./compare.ts";

declare global {
  var __compare: <T>(value: T, bugs: readonly number[], ...others: readonly (() => unknown)[]) => T;
  var __note: (bug: number) => void;
}

export interface Differences {
  /** The bugs whose place ran since the last call, and those of them that would have differed, by their positions. */
  readonly take: () => { readonly ran: ReadonlySet<number>; readonly differed: ReadonlySet<number> };
}

/** For all that is imported from now on. */
export function startDifferences(bugs: readonly Bug[]): Differences {
  let ran = new Set<number>();
  let differed = new Set<number>();
  /** What is evaluated as a file is loaded: that nobody can tell. */
  const unknown = new Set<number>();
  globalThis.__note = (bug) => {
    ran.add(bug);
    differed.add(bug);
  };
  globalThis.__compare = (value, numbers, ...others) => {
    for (const [i, bug] of numbers.entries()) {
      ran.add(bug);
      if (!differed.has(bug) && isOther(value, others[i])) differed.add(bug);
    }
    return value;
  };
  const numbered = bugs.map((bug, number) => [number, bug] as const);
  for (const [file, own] of Map.groupBy(numbered, ([, bug]) => bug.file))
    if (file.endsWith(".ts"))
      changeSources(file, (source) => {
        const compared = compareBugs(source, own);
        for (const bug of compared.unknown) unknown.add(bug);
        return { source: compared.text, format: "module" };
      });
  return {
    take() {
      const taken = { ran: new Set([...ran, ...unknown]), differed: new Set([...differed, ...unknown]) };
      ran = new Set();
      differed = new Set();
      return taken;
    },
  };
}

/** A bug that throws differs, too. */
function isOther(value: unknown, other: (() => unknown) | undefined): boolean {
  try {
    const instead = other?.();
    return !Object.is(value, instead) && !isDeepStrictEqual(value, instead);
  } catch {
    return true;
  }
}
