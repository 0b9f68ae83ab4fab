/** Many asynchronous actors on one thread, of which exactly one, the chosen one, continues at a time. */

/** A step that could be the next one. */
interface Waiting {
  readonly label: string;
  readonly actor: string;
}

/** Picks one of `count` steps, 0 to `count` - 1. */
export type Choose = (count: number, waiting: readonly Waiting[]) => number;

export interface Stepper {
  /** Resolves when this step is chosen. */
  readonly step: (label: string, actor: string) => Promise<void>;
  /** Drops all further steps of the actor, as if its process had been killed. */
  readonly kill: (actor: string) => void;
  /** Chooses step after step until no actor waits; resolves with the labels in order. */
  readonly run: (choose: Choose) => Promise<string[]>;
}

const MAX_STEPS = 2000;

export function createStepper(): Stepper {
  const waiting: (Waiting & { readonly go: () => void })[] = [];
  const killed = new Set<string>();
  return {
    step: (label, actor) => new Promise((go) => killed.has(actor) || waiting.push({ label, actor, go })),
    kill: (actor) => {
      killed.add(actor);
      for (let i = waiting.length - 1; i >= 0; i--) if (waiting[i]?.actor === actor) waiting.splice(i, 1);
    },
    async run(choose) {
      const labels: string[] = [];
      for (;;) {
        await quiet();
        const [chosen] = waiting.splice(waiting.length > 1 ? choose(waiting.length, waiting) : 0, 1);
        if (!chosen) return labels;
        if (labels.push(`${chosen.actor}: ${chosen.label}`) > MAX_STEPS)
          throw new Error(`no end in sight: ${labels.slice(-20).join("; ")}`);
        chosen.go();
      }
    },
  };
}

/** Resolves once every promise that can settle has settled: actors wait only for steps. */
function quiet(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Plays every possible order, each from the start: `play` gets the choices and resolves at the end of the play.
 * Resolves with the number of orders.
 */
export async function playEveryOrder(
  play: (choose: (count: number) => number) => Promise<void>,
  most: number,
): Promise<number> {
  let prefix: number[] = [];
  for (let plays = 1; ; plays++) {
    const taken: { chosen: number; count: number }[] = [];
    await play((count) => {
      const chosen = prefix[taken.length] ?? 0;
      taken.push({ chosen, count });
      return chosen;
    });
    while (taken.length > 0 && (taken.at(-1)?.chosen ?? 0) + 1 >= (taken.at(-1)?.count ?? 0)) taken.pop();
    const last = taken.pop();
    if (!last) return plays;
    if (plays >= most) throw new Error(`more than ${most} orders`);
    prefix = [...taken.map(({ chosen }) => chosen), last.chosen + 1];
  }
}

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
