/** Snapshots of groups for scaling, at a fixed time. */
import type { ZoneTimes } from "../../../reconciler/scaling/snapshot.ts";

import { group, type ZoneTraits } from "../builders.ts";

export const NOW = Date.UTC(2026, 0, 2, 12);
export const ago = (hours: number): string => new Date(NOW - hours * 3_600_000).toISOString();

export const LAST = "grafana.com/last-downscale";
export const minTime = (text: string) => ({ labels: { "grafana.com/min-time-between-zones-downscale": text } });
export const downscaled = (hours: number) => ({ annotations: { [LAST]: ago(hours) } });

export function snapshot(zones: readonly ZoneTraits[], tracked: Record<string, string> = {}): ZoneTimes {
  return { zones: group(...zones).zones, tracked: new Map(Object.entries(tracked)), now: NOW };
}
