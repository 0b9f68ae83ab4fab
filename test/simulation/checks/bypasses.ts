/** What people have written of bypasses, and for which times: a bypass ends by itself, or as it is taken away. */
import type { KubeObject } from "../../emulator/store.ts";

const BYPASS = "zonewise.dev/bypass-gates-until";
/** One that is further ahead as it is written never counts. */
const MAX_MS = 86_400_000;

interface Written {
  readonly text: string;
  readonly from: number;
  to: number;
}

export function createBypasses(now: () => number) {
  const written = new Map<string, Written[]>();
  return {
    note(zone: string, { metadata }: KubeObject): void {
      const text = metadata.annotations?.[BYPASS] ?? "";
      const all = written.get(zone) ?? [];
      const last = all.at(-1);
      if ((last?.text ?? "") === text) return;
      if (last) last.to = Math.min(last.to, now());
      written.set(zone, [...all, { text, from: now(), to: Infinity }]);
    },
    /** True if the zone may have begun by one so many milliseconds ago or later. */
    isBypassed: (zone: string, agoMs: number): boolean =>
      (written.get(zone) ?? []).some(({ text, from, to }) => {
        const until = Date.parse(text);
        return until - from <= MAX_MS && Math.min(until, to) >= now() - agoMs;
      }),
  };
}
