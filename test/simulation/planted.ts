/** What became of a planted bug. */
export interface Planted {
  readonly result: "found" | "not found" | "out of reach";
  /** Of `found` the median number of seeds until it was found again, otherwise the number that was played. */
  readonly seeds: number;
  /** The first violation, in words; of others what one must know of them. */
  readonly what?: string | undefined;
}

interface Played {
  readonly output: string;
  readonly errors: string;
  /** False if it was ended because it took too long. */
  readonly ended: boolean;
  /** All that this stands for: those in which the bug would not differ go as they go without it. */
  readonly seeds: number;
  /** In how many of all seeds the line ran, and in how many the bug would differ. */
  readonly ran: number;
  readonly differed: number;
  /** The seeds that were to be played, with the digests of their histories without the bug. */
  readonly digests: ReadonlyMap<number, string>;
}

const MAX_CHARS = 160;

/** Reads what `simulate.ts` printed. */
export function plantedOf({ output, errors, ended, seeds, ran, differed, digests }: Played): Planted {
  if (differed === 0) return { result: "not found", seeds, what: `${ran} seeds run it, and it would differ in none` };
  const finds = [...output.matchAll(/^seed (\d+): .*\n {2}(.*)$/gm)].map(([, seed, what = ""]) => ({
    seed: Number(seed),
    what,
  }));
  const [first] = finds;
  if (!first) {
    const trouble = ended ? errors.split("\n").find((line) => /error/i.test(line)) : "a history does not end";
    if (trouble !== undefined)
      return { result: "found", seeds: (digests.keys().next().value ?? 0) + 1, what: trouble.trim() };
    const without = [...digests.values()];
    const others = [...output.matchAll(/^digest (.*)$/gm)].filter(([, digest], i) => digest !== without[i]);
    const what = `${ran} seeds run it, it would differ in ${differed}, and of ${without.length} it changes ${others.length}`;
    return { result: "not found", seeds, what };
  }
  const gaps = finds.map(({ seed }, i) => seed - (finds[i - 1]?.seed ?? -1)).toSorted((a, b) => a - b);
  const median = gaps[Math.floor((gaps.length - 1) / 2)] ?? 0;
  return { result: "found", seeds: median, what: first.what.replaceAll("\t", " ").slice(0, MAX_CHARS) };
}

export function describePlanted({ result, seeds, what = "" }: Planted): string {
  switch (result) {
    case "found":
      return `found\t${seeds}\t${what}`;
    case "not found":
      return `not found\t${seeds}\t${what}`;
    case "out of reach":
      return `out of reach\t${seeds}\t${what || "no seed runs this line"}`;
    default:
      return result satisfies never;
  }
}
