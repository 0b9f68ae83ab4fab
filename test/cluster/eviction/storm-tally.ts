/**
 * Counts what happens in a storm. A storm that did not provoke what it is meant to provoke fails, as it
 * proves nothing.
 */
import type { Random } from "../stage/random.ts";

/** Everything that is counted; what is marked true must happen at least once. */
const COUNTED = {
  allowed: true,
  denied: true,
  dryRuns: true,
  /** Evictions with the pod's UID as a precondition. */
  ownUid: true,
  /** Evictions with the UID of an earlier pod as a precondition: none of them may take effect. */
  staleUid: true,
  /** The webhook was unreachable: 500. */
  unreachable: false,
  notFound: false,
  /**
   * The API server responded more than 450 ms after the webhook had allowed the eviction: it retries
   * conflicts every 500 ms.
   */
  retried: true,
  /** 409 for an eviction without a UID of its own. */
  refusedByPin: true,
  statusPatches: true,
  webhookKills: true,
  reconcilerKills: true,
  revisions: true,
  replaced: true,
} as const satisfies Readonly<Record<string, boolean>>;

export type Counted = keyof typeof COUNTED;

export interface Tally {
  readonly count: (name: Counted) => void;
  readonly countCode: (code: number) => void;
  readonly get: (name: Counted) => number;
  readonly set: (name: Counted, value: number) => void;
  /** All counts, and the number of responses per code. */
  readonly describe: () => string;
  /** What must happen and has not happened yet, except for what is `exempt`. */
  readonly missed: (exempt: readonly Counted[]) => readonly Counted[];
}

export function createTally(): Tally {
  const counts = new Map<Counted, number>();
  const codes = new Map<number, number>();
  const names = Object.keys(COUNTED) as Counted[];
  return {
    count: (name) => void counts.set(name, (counts.get(name) ?? 0) + 1),
    countCode: (code) => void codes.set(code, (codes.get(code) ?? 0) + 1),
    get: (name) => counts.get(name) ?? 0,
    set: (name, value) => void counts.set(name, value),
    describe: () =>
      [
        ...names.map((name) => `${name} ${counts.get(name) ?? 0}`),
        ...[...codes].map(([code, times]) => `${code}: ${times}`),
      ].join(", "),
    missed: (exempt) =>
      names.filter((name) => COUNTED[name] && !exempt.includes(name) && (counts.get(name) ?? 0) === 0),
  };
}

export interface Repetition {
  /** Aborting it ends the repetition. */
  readonly signal: AbortSignal;
  readonly random: Random;
  /** The upper bound of the random pause before each step. */
  readonly maxPauseMs: number;
}

/** Repeats `step`. Never rejects: errors are part of the storm. */
export async function repeat({ signal, random, maxPauseMs }: Repetition, step: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, random.between(0, maxPauseMs)));
    if (!signal.aborted) await step().catch(() => {});
  }
}
