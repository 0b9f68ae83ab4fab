/** How many cases of a property or a table are played: some in `npm test`, all in `npm run test:all`. */

/** The variable of the environment that says all. */
export const WHOLE = "ZONEWISE_TEST_ALL";
const isWhole = process.env[WHOLE] === "1";
/** No property plays fewer, and none more. */
const [FEWEST, MOST] = [50, 200];

/** The number of cases that this run plays, of `all`: a tenth, from 50 to 200. */
export const runs = (all: number): number =>
  isWhole ? all : Math.min(all, MOST, Math.max(FEWEST, Math.ceil(all / 10)));

/**
 * How often this run must reach at least what `all` cases must reach `count` times: so seldom that no run of good
 * tests fails by chance, and once at least. What some hundred cases may not meet has no such bound.
 */
export function least(count: number, all: number): number {
  const expected = (count * runs(all)) / all;
  return isWhole ? count : Math.max(1, Math.floor(expected / 2 - 2 * Math.sqrt(expected)));
}

/** One of two values: for all cases, and for the short run. */
export const either = <T>(whole: T, short: T): T => (isWhole ? whole : short);

const SHARE = 8;
/** Each run without a seed has other rows. */
const turn = Math.abs(Math.trunc(Number(process.env["ZONEWISE_TEST_SEED"] ?? Math.random() * SHARE))) % SHARE;

/** The rows of a table that this run plays: all, or every eighth. */
export function some<T>(rows: readonly T[]): readonly T[] {
  const played = isWhole ? rows : rows.filter((_, at) => at % SHARE === turn);
  if (played.length === 0)
    throw new RangeError("no row is played: ZONEWISE_TEST_SEED is no number, or they are too few");
  return played;
}
