/** Chance that can be repeated: SEED=n throws the same numbers again. */
import { createHash } from "node:crypto";

export const SEED = process.env["SEED"] ?? String(Date.now() % 1_000_000);

export interface Dice {
  /** From 0 to 1. */
  readonly next: () => number;
  /** Between `least` and `most`, for milliseconds. */
  readonly between: (least: number, most: number) => number;
  /** One of them; undefined if there is none. */
  readonly pick: <T>(from: readonly T[]) => T | undefined;
}

/** Dice of their own for each `name`: who throws more often does not change what the others throw. */
export function createDice(name: string): Dice {
  let throws = 0;
  const next = (): number => createHash("sha256").update(`${SEED}/${name}/${throws++}`).digest().readUInt32BE() / 2 ** 32;
  return {
    next,
    between: (least, most) => least + next() * (most - least),
    pick: (from) => from[Math.floor(next() * from.length)],
  };
}
