/** Repeatable random numbers: SEED=n gives the same numbers again. */
import { createHash } from "node:crypto";

export const SEED = process.env["SEED"] ?? String(Date.now() % 1_000_000);

export interface Random {
  /** From 0 to 1. */
  readonly next: () => number;
  /** From `min` to `max`, for milliseconds. */
  readonly between: (min: number, max: number) => number;
  /** One of the values; undefined if there is none. */
  readonly pick: <T>(values: readonly T[]) => T | undefined;
}

/** Each `name` has a sequence of its own, so that users do not affect each other's numbers. */
export function createRandom(name: string): Random {
  let drawn = 0;
  const next = (): number =>
    createHash("sha256").update(`${SEED}/${name}/${drawn++}`).digest().readUInt32BE() / 2 ** 32;
  return {
    next,
    between: (min, max) => min + next() * (max - min),
    pick: (values) => values[Math.floor(next() * values.length)],
  };
}
