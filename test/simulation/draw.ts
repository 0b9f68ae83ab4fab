/** Choices that a seed decides. */
import { seededRandom } from "../reconciler/interleavings/stepper.ts";

export interface Draw {
  /** A whole number from 0 to `count` - 1. */
  below(count: number): number;
  /** From 0 to 1, 1 excluded. */
  fraction(): number;
  /** True with this probability. */
  chance(probability: number): boolean;
  /** A whole number within these bounds, both included. */
  between(from: number, to: number): number;
  /** One of the items; throws if there is none. */
  of<T>(items: readonly T[]): T;
}

export function drawFrom(seed: number): Draw {
  const random = seededRandom(Math.imul(seed + 1, 0x9e3779b1) | 0);
  const below = (count: number): number => random(count);
  const fraction = (): number => random(0x1000000) / 0x1000000;
  return {
    below,
    fraction,
    chance: (probability) => fraction() < probability,
    between: (from, to) => from + below(to - from + 1),
    of: (items) => {
      if (items.length === 0) throw new Error("nothing to choose from");
      return items[below(items.length)] as (typeof items)[number];
    },
  };
}
