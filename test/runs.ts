/** How many cases a property plays: some of them in `npm test`, all of them in `npm run test:all`. */

/** The variable of the environment that says all. */
export const WHOLE = "ZONEWISE_TEST_ALL";
const isWhole = process.env[WHOLE] === "1";
/** No property plays fewer. */
const FEWEST = 100;

/** The number of cases that this run plays, of `all`: a tenth, but at least a hundred. */
export const runs = (all: number): number => (isWhole ? all : Math.min(all, Math.max(FEWEST, Math.ceil(all / 10))));

/**
 * How often this run must reach what `all` cases reach `count` times at least: half as often for its number of cases,
 * as few of them vary more. What is rare, only `npm run test:all` must reach.
 */
export const least = (count: number, all: number): number => (isWhole ? count : Math.floor((count * runs(all)) / all / 2));
