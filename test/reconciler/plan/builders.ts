/** Worlds for looks ahead. */
import type { ZoneWithPods } from "../../../reconciler/model/zone.ts";
import type { World } from "../../../reconciler/plan/world.ts";

export const NOW = Date.parse("2026-01-01T12:00:00Z");

/** A world of these zones, without budgets and gates; each pod takes a minute to become ready. */
export function worldOf(zones: readonly ZoneWithPods[], more: Partial<World> = {}): World {
  return {
    namespace: "test",
    group: "ingester",
    zones,
    budgets: [],
    gates: [],
    tracked: new Map(),
    references: new Map(),
    preparedAt: new Map(),
    readyMs: new Map(zones.map(({ uid }) => [uid, 60_000])),
    now: NOW,
    ...more,
  };
}
