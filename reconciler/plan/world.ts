/** A group as a value, for a look ahead: as one tick gathers it, and as steps and time then change it. */
import type { ZoneWithPods } from "../model/zone.ts";
import type { Reservations } from "../budget/reservation.ts";
import type { StoredBudget } from "../budget/zpdb.ts";
import type { Gate } from "../gates/gate.ts";
import { medianReadyMs } from "../rollout/decide-rollout.ts";
import type { ReferenceReading } from "../scaling/snapshot.ts";

/** A budget, and the StatefulSets that it selects beside the group. */
export interface WorldBudget extends StoredBudget {
  readonly reservations: Reservations;
  /** StatefulSets of other groups, or of none. They stay as they are. */
  readonly others: readonly ZoneWithPods[];
}

export interface World {
  readonly namespace: string;
  readonly group: string;
  /** In byte order of their names. */
  readonly zones: readonly ZoneWithPods[];
  /** Pods of the group that are of none of its zones, as zones. They stay as they are. */
  readonly orphans?: readonly ZoneWithPods[];
  readonly budgets: readonly WorldBudget[];
  readonly gates: readonly Gate[];
  /**
   * When each zone was last scaled down, by the zone tracker and the downscale Lease; undefined if that cannot be read.
   */
  readonly tracked: ReadonlyMap<string, string> | undefined;
  /** The references of mirroring zones, by the zones' UIDs. */
  readonly references: ReadonlyMap<string, ReferenceReading>;
  /** Since when the last pods of a zone have been preparing to go, by its UID; milliseconds since the epoch. */
  readonly preparedAt: ReadonlyMap<string, number>;
  /** Milliseconds that a pod takes to become ready, by the UID of its zone; 0 if nothing shows it. */
  readonly readyMs: ReadonlyMap<string, number>;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The same world with another version of a zone. */
export function putZone(world: World, next: ZoneWithPods): World {
  return { ...world, zones: world.zones.map((zone) => (zone.uid === next.uid ? next : zone)) };
}

/**
 * The milliseconds that a pod of each zone takes to become ready, by the zone's UID. A zone without such a time counts
 * as fast as the slowest other one.
 */
export function estimateReadyMs(zones: readonly ZoneWithPods[]): ReadonlyMap<string, number> {
  const slowest = Math.max(0, ...zones.flatMap((zone) => medianReadyMs(zone) ?? []));
  return new Map(zones.map((zone) => [zone.uid, medianReadyMs(zone) ?? slowest]));
}
