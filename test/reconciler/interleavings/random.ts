/** A random number from 0 to `count` - 1. */
export type Random = (count: number) => number;

/** The same numbers for the same seed, so that a play can be repeated: mulberry32. */
export function seededRandom(seed: number): Random {
  let state = seed;
  return (count) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % count;
  };
}
