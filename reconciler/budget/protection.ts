/**
 * What a disruption budget protects now, for its status (§5.10). By the statuses of its zones: no pod is read for it.
 */
import { type Condition, stampCondition } from "../model/condition.ts";
import { groupBy, ownerNameOf } from "../model/order.ts";
import type { Zone } from "../model/zone.ts";
import type { BudgetProblem } from "./partition.ts";
import { firstLeaving, timeLeft, readDownscaleKey, type Reservations } from "./reservation.ts";
import { allowedUnavailable, type Budget } from "./zpdb.ts";

export interface Protection {
  readonly observedGeneration: number;
  readonly zones: readonly ProtectedZone[];
  /** The condition `Protecting`, alone. */
  readonly conditions: readonly ProtectionCondition[];
}

export interface ProtectedZone {
  /** The StatefulSet's name. */
  readonly name: string;
  /** Pods that should be there, and those that are ready and not reserved. */
  readonly expected: number;
  readonly healthy: number;
  /** Evictions that would be allowed now; in partition mode that depends on the partition, and it is absent. */
  readonly disruptionsAllowed?: number;
}

export interface ProtectionCondition extends Condition {
  readonly type: "Protecting";
  readonly status: "True" | "False";
  readonly reason: "Protecting" | "Invalid" | "SelectsNothing" | "TooFewZones";
}

export interface ProtectionInput {
  readonly content: Budget | BudgetProblem;
  readonly generation: number;
  /** The StatefulSets that it selects, in byte order of their names. */
  readonly zones: readonly Zone[];
  readonly reservations: Reservations;
  /** As it is stored. */
  readonly earlier: Partial<Protection>;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export function describeProtection(input: ProtectionInput): Protection {
  const { content, generation } = input;
  const zones = "problem" in content ? [] : describeZones(content, input);
  return { observedGeneration: generation, zones, conditions: [describeCondition(input)] };
}

function describeZones(budget: Budget, { zones, reservations, now }: ProtectionInput): ProtectedZone[] {
  const living = Object.fromEntries(
    Object.entries(reservations).filter(([key, reservation]) => timeLeft(key, reservation, now) > 0),
  );
  const reserved = countReserved(living);
  const counted = zones.map((zone) => {
    const expected = Math.max(zone.replicas, zone.status.replicas);
    // A pod that is reserved, or goes by a downscale, may be not ready already.
    const unready = Math.max(expected - zone.status.ready, reserved.get(zone.name) ?? 0);
    const lost = Math.max(unready, countLeaving(zone, living));
    return { zone, expected, unready, healthy: Math.max(0, expected - lost) };
  });
  const lacking = counted.filter(({ expected, healthy }) => healthy !== expected).length;
  return counted.map(({ zone, expected, unready, healthy }) => {
    const othersLacking = lacking - (healthy === expected ? 0 : 1);
    const room = allowedUnavailable(budget, { spec: zone.replicas, status: zone.status.replicas }) - unready;
    const isFree = zones.length > 1 && othersLacking === 0;
    const disruptionsAllowed = isFree ? Math.min(healthy, Math.max(0, room)) : 0;
    return { name: zone.name, expected, healthy, ...(!budget.partitionOf && { disruptionsAllowed }) };
  });
}

/** By the name of the zone. */
function countReserved(living: Reservations): ReadonlyMap<string, number> {
  const pods = Object.keys(living).filter((key) => !readDownscaleKey(key));
  const byZone = groupBy(pods, ownerNameOf);
  return new Map([...byZone].map(([zone, ours]) => [zone, ours.length]));
}

/** Pods beyond the replicas, or beyond those of a downscale that is reserved. */
function countLeaving(zone: Zone, living: Reservations): number {
  const staying = Math.min(zone.replicas, firstLeaving(zone, living) - zone.firstOrdinal);
  return Math.max(0, zone.status.replicas - staying);
}

function describeCondition({ content, zones, earlier, ...times }: ProtectionInput): ProtectionCondition {
  const [reason, message] = judge(content, zones);
  const status = reason === "Protecting" ? "True" : "False";
  const condition = { type: "Protecting", status, reason, message: message.slice(0, 1000) } as const;
  return stampCondition(condition, { ...times, earlier: earlier.conditions });
}

function judge(
  content: Budget | BudgetProblem,
  zones: readonly Zone[],
): readonly [ProtectionCondition["reason"], string] {
  if ("problem" in content) return ["Invalid", `no pod that it selects is evicted: ${content.problem}`];
  const [first] = zones;
  if (!first) return ["SelectsNothing", "no StatefulSet has the labels of its selector"];
  if (zones.length === 1)
    return ["TooFewZones", `it selects ${first.name} alone, and denies each eviction of its pods`];
  return ["Protecting", `it selects ${zones.length} zones`];
}
