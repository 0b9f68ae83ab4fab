/** What passes over the nodes put right: in as many as that one has written what is to be written. */
export interface OverdueOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /** What is not right, in words. */
  readonly find: () => ReadonlySet<string>;
  /** True of a process that meets no fault by now and has long not stood still: its passes come to their ends. */
  readonly isSteady: (actor: string) => boolean;
}

const PASSES = 3;
/** Milliseconds until it is there. */
const WRITTEN_MS = 10_000;

export function createOverdue({ violated, now, find, isSteady }: OverdueOptions) {
  /** What is not right, since when. */
  const found = new Map<string, number>();
  /** By actor when it has begun passes of late. */
  const passes = new Map<string, readonly number[]>();

  function note(): void {
    const wrong = find();
    for (const what of found.keys()) if (!wrong.has(what)) found.delete(what);
    for (const what of wrong) if (!found.has(what)) found.set(what, now());
  }

  return {
    /** Something has changed. */
    note,
    /** A reconciler begins a pass: those before it have written what they had to write. */
    onPass(actor: string, at: number): void {
      const before = passes.get(actor) ?? [];
      passes.set(actor, [...before, at].slice(-PASSES));
      const first = before.at(1 - PASSES) ?? -Infinity;
      if (!isSteady(actor)) return;
      note();
      for (const [what, since] of found) {
        if (since >= first || now() - since < WRITTEN_MS) continue;
        violated(`${what}, after ${PASSES - 1} passes of ${actor}`);
        found.set(what, Infinity);
      }
    },
  };
}
