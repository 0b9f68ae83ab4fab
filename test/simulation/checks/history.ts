/** What objects were. */
import type { KubeObject } from "../../emulator/store.ts";

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
  };
}

export type History = ReturnType<typeof createHistory>;
