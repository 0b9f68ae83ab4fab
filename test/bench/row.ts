/** What a bench gives back: one line of the table each. */

export interface Row {
  readonly what: string;
  readonly figure: string;
  /** What the figure should be, and whether it is. */
  readonly aim?: Aim;
}

export interface Aim {
  readonly text: string;
  readonly met: boolean;
}

/** One file in test/bench, one of these in it, one line in the list of main.ts. No rows if it cannot run here, after saying why. */
export type Bench = (ground: Ground) => Promise<readonly Row[]>;

/** What every bench stands on. */
export interface Ground {
  /** The repository. */
  readonly root: string;
  /** What `npm run build` made of it, fresh. */
  readonly dist: string;
  /** A directory that is deleted in the end. It lies in `root`, as what is bundled there must find its packages. */
  readonly scratch: string;
}

/** An aim that is met from `limit` downwards. */
export function atMost(limit: number, unit: string, value: number): Aim {
  return { text: `at most ${limit}${unit}`, met: value <= limit };
}

export function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)] ?? Number.NaN;
}
