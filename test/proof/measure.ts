/** What the records of a run say: pure. Times are milliseconds of `performance.now()`. */
import type { Entry } from "../cluster/stage/invariants.ts";

/** One scene: what was done to the database, and what came of it. */
export interface Scene {
  readonly name: string;
  /** Without Zonewise, for comparison. */
  readonly isControl: boolean;
  readonly from: number;
  readonly to: number;
  readonly acknowledged: number;
  readonly lost: number;
  /** The longest time without an acknowledgement of a stream. */
  readonly longestGapMs: number;
  /** Zones with a server that was deleted and not ready again, at once. */
  readonly zonesDown: number;
  /** The longest time for which the writers' own process stood still. */
  readonly pauseMs: number;
}

interface Span {
  readonly from: number;
  readonly to: number;
}

/** The longest time between two acknowledgements of a stream of which some lies within the span. */
export function longestGap(streams: readonly (readonly number[])[], { from, to }: Span): number {
  let longest = 0;
  for (const times of streams)
    for (const [i, at] of times.entries()) {
      const before = times[i - 1];
      if (before !== undefined && at > from && before < to) longest = Math.max(longest, at - before);
    }
  return longest;
}

export const countWithin = (streams: readonly (readonly number[])[], { from, to }: Span): number =>
  streams.reduce((sum, times) => sum + times.filter((at) => at > from && at <= to).length, 0);

/** For each second from `from`: the longest gap, of any stream, of which some lies within it. */
export function gapsBySecond(streams: readonly (readonly number[])[], { from, to }: Span): number[] {
  const gaps: number[] = Array.from({ length: Math.ceil((to - from) / 1000) }, () => 0);
  for (const times of streams)
    for (const [i, at] of times.entries()) {
      const before = times[i - 1];
      if (before === undefined) continue;
      const last = Math.min(gaps.length - 1, Math.floor((at - from) / 1000));
      for (let second = Math.max(0, Math.floor((before - from) / 1000)); second <= last; second++)
        gaps[second] = Math.max(gaps[second] ?? 0, at - before);
    }
  return gaps;
}

/**
 * The most zones that had a server away at once, from the entry at `index` of a timeline on: from its deletion, by whomever,
 * until it is ready again. Those from ordinal `replicas` on that are gone do not come back.
 */
export function mostZonesDown(timeline: readonly Entry[], index: number, replicas: number): number {
  const away = new Map<string, string>();
  let most = 0;
  for (const [i, { pod, zone, state }] of timeline.entries()) {
    const isExtra = Number(pod.slice(pod.lastIndexOf("-") + 1)) >= replicas;
    if (state === "ready" || (state === "gone" && isExtra)) away.delete(pod);
    else if (state !== "notReady") away.set(pod, zone);
    if (i >= index) most = Math.max(most, new Set(away.values()).size);
  }
  return most;
}
