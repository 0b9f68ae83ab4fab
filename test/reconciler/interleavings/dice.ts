/** From 0 to `count` - 1. */
export type Dice = (count: number) => number;

/** Choices from a seed, so that a play can be repeated: mulberry32. */
export function dice(seed: number): Dice {
  let state = seed;
  return (count) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % count;
  };
}
