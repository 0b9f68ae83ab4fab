/** The results of a bench: the rows of the table. */

export interface Row {
  readonly what: string;
  readonly figure: string;
  /** The target for the figure, and whether it is met. */
  readonly aim?: Aim;
}

export interface Aim {
  readonly text: string;
  readonly met: boolean;
}

/** A bench. It returns no rows if it cannot run here, after it has printed why. */
export type Bench = (environment: BenchEnvironment) => Promise<readonly Row[]>;

/** The environment of every bench. */
export interface BenchEnvironment {
  /** The repository's root. */
  readonly root: string;
  /** The output of `npm run build`, built for this run. */
  readonly dist: string;
  /** A temporary directory. It is below `root`, so that bundles in it find their packages. */
  readonly scratch: string;
}

/** A target that is met by figures of at most `limit`. */
export function atMost(limit: number, unit: string, value: number): Aim {
  return { text: `at most ${limit}${unit}`, met: value <= limit };
}

export function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)] ?? Number.NaN;
}
