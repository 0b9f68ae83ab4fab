/** Which fault happens at which call: as the seed draws it, or of those only the ones that a list names. */
import { spreadHash } from "../../reconciler/model/hash.ts";
import type { Draw } from "./draw.ts";
import { BURST_MS, type Fault, type Shape } from "./shape.ts";

export interface FaultsOptions {
  readonly draw: Draw;
  readonly shape: Shape;
  /** Milliseconds since the world began. */
  readonly age: () => number;
  /** Ids of the strikes that happen; all that the seed draws if undefined. */
  readonly only: ReadonlySet<string> | undefined;
  readonly onStrike: (cell: string, id: string) => void;
}

export interface Faults {
  /** True if this fault happens at this call site now. */
  readonly strikes: (fault: Fault, site: string) => boolean;
  /** None happens any more. */
  readonly calm: () => void;
  /** "fault at call site" of all that could have happened, and how often it did. */
  readonly cells: ReadonlyMap<string, number>;
  /** Ids of those that happened. */
  readonly struck: readonly string[];
}

/** By how much more often a fault strikes the first calls of a site: most are made a few times in a history, if at all. */
const RARE = 8;
/** By how much more often faults strike in a burst, and less often outside. */
const [IN_BURST, OUTSIDE] = [2, 0.5];

export function createFaults({ draw, shape, age, only, onStrike }: FaultsOptions): Faults {
  const asked = new Map<string, number>();
  const cells = new Map<string, number>();
  const struck: string[] = [];
  const levels: Readonly<Partial<Record<Fault, number>>> = { ...shape.faults, ...shape.nodes?.faults };
  let isCalm = false;
  const isBurst = (): boolean => shape.bursts.some((at) => age() >= at && age() < at + BURST_MS);
  return {
    strikes(fault, site) {
      if (isCalm) return false;
      const cell = `${fault} at ${site}`;
      const before = asked.get(cell) ?? 0;
      asked.set(cell, before + 1);
      const times = cells.get(cell) ?? 0;
      cells.set(cell, times);
      const rate = (levels[fault] ?? 0) * (1 + RARE / (1 + before));
      if (!draw.chance(rate * (isBurst() ? IN_BURST : OUTSIDE))) return false;
      // The same for the same call of another history, as far as both have made as many of them.
      const id = spreadHash(`${cell} ${before}`).toString(36);
      if (only && !only.has(id)) return false;
      cells.set(cell, times + 1);
      struck.push(id);
      onStrike(cell, id);
      return true;
    },
    calm: () => void (isCalm = true),
    cells,
    struck,
  };
}
