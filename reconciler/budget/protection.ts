/**
 * The protection that a disruption budget gives now, for its status (§5.10). It is judged by the statuses of the
 * budget's zones. Pods are read only in partition mode, while the statuses do not tell which of them are ready.
 */
import { type Condition, stampCondition } from "../model/condition.ts";
import { groupBy, ownerNameOf } from "../model/order.ts";
import type { Zone } from "../model/zone.ts";
import type { Guard, GuardReason } from "./guard.ts";
import type { BudgetProblem } from "./partition.ts";
import type { BudgetZone } from "./budget-pod.ts";
import { countAllowedEvictions, expectedPods, isComplete, isCountable, withCountedPods } from "./headroom.ts";
import { firstLeaving, timeLeft, type Reservations } from "./reservation.ts";
import type { Budget } from "./zpdb.ts";

export interface Protection {
  readonly observedGeneration: number;
  readonly zones: readonly ProtectedZone[];
  /** The condition `Protecting`, alone. */
  readonly conditions: readonly ProtectionCondition[];
}

interface ProtectedZone {
  /** The StatefulSet's name. */
  readonly name: string;
  /** Pods that should be there, and those that are ready and not reserved. */
  readonly expected: number;
  readonly healthy: number;
  /** Evictions that would be allowed now, one after the other; absent if that is unknown. */
  readonly disruptionsAllowed?: number;
}

interface ProtectionCondition extends Condition {
  readonly type: "Protecting";
  readonly status: "True" | "False" | "Unknown";
  readonly reason: "Protecting" | "Invalid" | "SelectsNothing" | "TooFewZones" | Exclude<GuardReason, "Guarded">;
}

interface ProtectionInput {
  readonly content: Budget | BudgetProblem;
  readonly generation: number;
  /** The StatefulSets that it selects, in byte order of their names. */
  readonly zones: readonly Zone[];
  /** The zones with their pods, if these were read. */
  readonly withPods?: readonly BudgetZone[] | undefined;
  readonly reservations: Reservations;
  /** Whether a webhook asks it about evictions. */
  readonly guard: Guard;
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

function describeZones(budget: Budget, { zones, withPods, reservations, now }: ProtectionInput): ProtectedZone[] {
  const living = livingByTime(reservations, now);
  const reserved = countReserved(living);
  const known = needsPods(budget, { zones, reservations, now })
    ? (withPods ?? [])
    : isCountable(budget, zones.map(expectedPods))
      ? zones.map((zone) => withCountedPods(zone, living))
      : [];
  const byUid = new Map(known.map((zone) => [zone.uid, zone]));
  const view = { budget, zones: known, reservations: living, now };
  return zones.map((zone) => {
    const expected = expectedPods(zone);
    // A pod that is reserved, or that a downscale removes, may already be not ready.
    const unready = Math.max(expected - zone.status.ready, reserved.get(zone.name) ?? 0);
    const healthy = Math.max(0, expected - Math.max(unready, countLeaving(zone, living)));
    const own = byUid.get(zone.uid);
    const disruptionsAllowed = own && countAllowedEvictions(own, view);
    return { name: zone.name, expected, healthy, ...(disruptionsAllowed !== undefined && { disruptionsAllowed }) };
  });
}

/**
 * True if the statuses do not tell how many evictions would be allowed: which partitions lack a pod, and since when
 * each pod is ready. False beyond the bounds of the count: pods are not read for a number that is never reported.
 */
export function needsPods(
  budget: Budget,
  { zones, reservations, now }: Pick<ProtectionInput, "zones" | "reservations" | "now">,
): boolean {
  const { partitionOf, crossZoneEvictionDelayMs } = budget;
  if (!partitionOf || zones.length < 2 || !isCountable(budget, zones.map(expectedPods))) return false;
  if (crossZoneEvictionDelayMs > 0) return true;
  return !zones.every(isComplete) || Object.keys(livingByTime(reservations, now)).length > 0;
}

const livingByTime = (reservations: Reservations, now: number): Reservations =>
  Object.fromEntries(Object.entries(reservations).filter(([, one]) => timeLeft(one, now) > 0));

/** By the name of the zone. */
function countReserved(living: Reservations): ReadonlyMap<string, number> {
  const pods = Object.entries(living).filter(([, { kind }]) => kind !== "downscale");
  const byZone = groupBy(pods, ([name]) => ownerNameOf(name));
  return new Map([...byZone].map(([zone, ours]) => [zone, ours.length]));
}

/** Pods beyond the replicas, or beyond those of a downscale that is reserved. */
function countLeaving(zone: Zone, living: Reservations): number {
  const staying = Math.min(zone.replicas, firstLeaving(zone, living) - zone.firstOrdinal);
  return Math.max(0, zone.status.replicas - staying);
}

function describeCondition({ content, zones, guard, earlier, ...times }: ProtectionInput): ProtectionCondition {
  const [reason, message] = judge(content, zones, guard);
  const status = reason === "Protecting" ? "True" : reason === "NotSeen" ? "Unknown" : "False";
  const condition = { type: "Protecting", status, reason, message: message.slice(0, 1000) } as const;
  return stampCondition(condition, { ...times, earlier: earlier.conditions });
}

function judge(
  content: Budget | BudgetProblem,
  zones: readonly Zone[],
  guard: Guard,
): readonly [ProtectionCondition["reason"], string] {
  if ("problem" in content) return ["Invalid", `no pod that it selects is evicted: ${content.problem}`];
  const [first] = zones;
  if (!first) return ["SelectsNothing", "no StatefulSet has the labels of its selector"];
  if (zones.length === 1)
    return ["TooFewZones", `it selects ${first.name} alone, and denies each eviction of its pods`];
  if (guard.reason !== "Guarded") return [guard.reason, guard.message];
  return ["Protecting", `it selects ${zones.length} zones, and ${guard.message}`];
}
