/** What decisions about scaling look at, and what they come to. */
import type { Hold } from "../model/decision.ts";
import type { Zone } from "../model/zone.ts";

/** Give the zone this many replicas. */
export interface ScaleZone {
  readonly action: "scaleZone";
  readonly zone: Zone;
  readonly replicas: number;
  /** What `last-downscale` is set to, in milliseconds since the epoch, where the group keeps a time between zones. */
  readonly recordAt?: number;
  readonly message: string;
}

export type ScaleDecision = ScaleZone | Hold;

/** All that a decision about scaling may look at. */
export interface ScalingSnapshot {
  /** The zones of one group, in byte order of their names. */
  readonly zones: readonly Zone[];
  /** When each zone was last scaled down, by the zone tracker's ConfigMap and by the group's downscale Lease; undefined if either cannot be read. */
  readonly tracked: ReadonlyMap<string, string> | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}
