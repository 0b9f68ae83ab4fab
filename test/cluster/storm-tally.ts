/** What a storm reached. A storm that did not reach what it is meant to provoke proves nothing, and fails. */
import assert from "node:assert/strict";
import type { Dice } from "./dice.ts";

/** The closed list of what is counted; those marked true must each happen at least once. */
const COUNTED = {
  allowed: true,
  denied: true,
  dryRuns: true,
  /** Evictions that named the right UID themselves. */
  ownUid: true,
  /** Evictions that named the UID of an earlier pod: none of them may take effect. */
  staleUid: true,
  /** The webhook was out of reach: 500. */
  unreachable: false,
  notFound: false,
  /** The API server was still busy with an eviction 450 ms after the webhook had allowed it: it retries conflicts every 500 ms. */
  retried: true,
  /** 409 of an eviction that named no UID itself. */
  refusedByPin: true,
  statusPatches: true,
  webhookKills: true,
  reconcilerKills: true,
  revisions: true,
  replaced: true,
} as const satisfies Readonly<Record<string, boolean>>;

export type Counted = keyof typeof COUNTED;

export interface Tally {
  readonly count: (what: Counted) => void;
  readonly get: (what: Counted) => number;
  readonly set: (what: Counted, value: number) => void;
  /** All counts, and all codes with how often each was answered. */
  readonly describe: () => string;
  /** Throws unless everything that must be reached was, but for what is `exempt`. */
  readonly assertReached: (exempt?: readonly Counted[]) => void;
  readonly answered: (code: number) => void;
}

export function createTally(): Tally {
  const counts = new Map<Counted, number>();
  const codes = new Map<number, number>();
  const names = Object.keys(COUNTED) as Counted[];
  return {
    count: (what) => void counts.set(what, (counts.get(what) ?? 0) + 1),
    get: (what) => counts.get(what) ?? 0,
    set: (what, value) => void counts.set(what, value),
    answered: (code) => void codes.set(code, (codes.get(code) ?? 0) + 1),
    describe: () =>
      [...names.map((name) => `${name} ${counts.get(name) ?? 0}`), ...[...codes].map(([code, times]) => `${code}: ${times}`)].join(", "),
    assertReached(exempt = []) {
      const missed = names.filter((name) => COUNTED[name] && !exempt.includes(name) && !counts.has(name));
      assert.deepEqual(missed, [], "the storm did not reach what it is meant to provoke");
    },
  };
}

/** Runs `step` until the signal ends it, with a pause of 0 to `mostMs` before each. Never rejects: whatever fails is part of the storm. */
export async function repeat(signal: AbortSignal, dice: Dice, mostMs: number, step: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, dice.between(0, mostMs)));
    if (!signal.aborted) await step().catch(() => {});
  }
}
