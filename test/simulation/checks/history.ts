/** What objects were, and when each process has read them: so it is known what a process knew as it decided. */
import type { KubeObject } from "../../emulator/store.ts";
import type { Caller } from "../network.ts";

interface Version {
  readonly from: number;
  /** Undefined where there was none. */
  readonly object: KubeObject | undefined;
}

/** Longer than anybody decides by what was read. */
const KEPT_MS = 400_000;

/** The versions of objects by any key, as long as somebody may have read them. */
export function createHistory(now: () => number) {
  const versions = new Map<string, readonly Version[]>();
  const keep = (all: readonly Version[]): readonly Version[] =>
    all.filter((_, i) => (all[i + 1]?.from ?? Infinity) > now() - KEPT_MS);
  return {
    note(key: string, object: KubeObject | undefined): void {
      const before = versions.get(key) ?? [{ from: -Infinity, object: undefined }];
      versions.set(key, [...keep(before), { from: now(), object }]);
    },
    /** All that it has been since then, until now or an earlier time. */
    since(key: string, at: number, until = now()): readonly (KubeObject | undefined)[] {
      const all = versions.get(key) ?? [];
      return all
        .filter(({ from }, i) => from <= until && (all[i + 1]?.from ?? Infinity) >= at)
        .map(({ object }) => object);
    },
    /** When it was stored as it is. */
    storedAt: (key: string): number => versions.get(key)?.at(-1)?.from ?? -Infinity,
  };
}

export type History = ReturnType<typeof createHistory>;

interface Read {
  readonly sentAt: number;
  /** When the API server answered it. */
  readonly at: number;
}

/** The successful reads of the processes, by words that the path has. */
export function createReads(now: () => number) {
  const reads = new Map<string, Read[]>();
  return {
    note({ actor, sentAt = now() }: Caller, key: string): void {
      const all = reads.get(`${actor} ${key}`) ?? [];
      reads.set(`${actor} ${key}`, [...all.filter(({ at }) => at > now() - KEPT_MS), { sentAt, at: now() }]);
    },
    /** The last before that of those that were sent at once with another one. */
    lastOfBoth(actor: string, [key, other]: readonly [string, string], before: number): Read | undefined {
      const sent = new Set(reads.get(`${actor} ${other}`)?.map(({ sentAt }) => sentAt));
      return reads.get(`${actor} ${key}`)?.findLast(({ sentAt }) => sentAt <= before && sent.has(sentAt));
    },
    /** The last but so many. */
    lastBut: (actor: string, key: string, count: number): Read | undefined =>
      reads.get(`${actor} ${key}`)?.at(-1 - count),
    /** The last that was sent before that. */
    lastBefore: (actor: string, key: string, before: number): Read | undefined =>
      reads.get(`${actor} ${key}`)?.findLast(({ sentAt }) => sentAt <= before),
  };
}

export type Reads = ReturnType<typeof createReads>;
