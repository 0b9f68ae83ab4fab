/**
 * The pods that were unavailable when a budget was last read whole. The next denial reads a few of them again and needs
 * no list. They are a hint: they never allow an eviction.
 *
 *   whole budget read -> unavailable pods cached -> eviction of another pod -> enough of them still unavailable? -> denied
 *                                                                               -> otherwise the whole budget is read
 */
import { countMissing, isIdleSurplus } from "../model/readiness.ts";
import type { Zone } from "../model/zone.ts";
import type { BudgetZone, BudgetPod } from "./budget-pod.ts";
import { describeUnavailability, type EvictionSnapshot, isReady } from "./unavailability.ts";
import { allowedUnavailable, type Budget } from "./zpdb.ts";

/**
 * A pod that was not ready, reserved or missing. A pod that a downscale removes is not one: only its zone shows
 * whether it is still to go.
 */
export interface BlockingPod {
  readonly pod: string;
  readonly zone: Zone;
}

/** The facts of a budget that was read whole, cached for the next denials. */
export interface CachedDenial {
  /** Milliseconds on the monotonic clock. */
  readonly at: number;
  readonly budget: Budget;
  readonly zones: readonly Zone[];
  readonly blocking: readonly BlockingPod[];
}

/** The eviction is denied if `needed` of these pods, all of one zone or partition, are still unavailable. */
export interface DenialCheck {
  /** The zone of the pod that is to be evicted. */
  readonly own: Zone;
  readonly blocking: readonly BlockingPod[];
  /** 1 or more; 0 if the budget allows nothing. */
  readonly needed: number;
  /** `zone-a`, or `partition 2`. */
  readonly where: string;
}

/** A blocking pod, read again: undefined if it is gone, together with its zone as it is now. */
export interface Reread {
  readonly blocker: BlockingPod;
  readonly pod: BudgetPod | undefined;
  readonly zone?: Zone | undefined;
}

type View = Pick<EvictionSnapshot, "now" | "budget" | "reservations">;

/**
 * Missing pods of a zone that are cached: one is enough for a denial, and `spec.replicas` may be larger than memory.
 */
const MAX_MISSING = 100;

/** The unavailable pods of a budget that was read whole; `at` in milliseconds on the monotonic clock. */
export function findBlocking(zones: readonly BudgetZone[], view: View, at: number): CachedDenial {
  const blocking = zones.flatMap(({ pods, ...zone }) => {
    const unready = pods.filter((pod) => !isReady(pod, view) && !isIdleSurplus(pod, zone)).map(({ name }) => name);
    return [...unready, ...missingPods(zone, pods, MAX_MISSING)].map((pod) => ({ pod, zone }));
  });
  return { at, budget: view.budget, zones: zones.map(({ pods: _pods, ...zone }) => zone), blocking };
}

/** Names of pods that the zone should have and has not, the first `most` of them. */
export function missingPods(zone: Zone, pods: readonly { readonly name: string }[], most: number): string[] {
  const expected = Math.max(zone.replicas, zone.status.replicas);
  const count = Math.min(most, countMissing(zone, pods));
  if (count === 0) return [];
  const there = new Set(pods.map(({ name }) => name));
  const missing: string[] = [];
  for (let ordinal = zone.firstOrdinal; ordinal < zone.firstOrdinal + expected && missing.length < count; ordinal++) {
    const name = `${zone.name}-${ordinal}`;
    if (!there.has(name)) missing.push(name);
  }
  return missing;
}

/**
 * The pods to read again for an eviction of the pod of this name; undefined if they would not deny it, or if it would
 * take more than `mostReads` reads.
 */
export function planDenialCheck(podName: string, cached: CachedDenial, mostReads: number): DenialCheck | undefined {
  const { budget } = cached;
  const own = cached.zones.find(
    ({ name }) => podName.startsWith(`${name}-`) && /^\d+$/.test(podName.slice(name.length + 1)),
  );
  if (!own || cached.zones.length < 2) return undefined;
  const max = allowedUnavailable(budget, { spec: own.replicas, status: own.status.replicas });
  if (max === 0) return isZero(budget) ? { own, blocking: [], needed: 0, where: "" } : undefined;
  // What is left of a StatefulSet that was created again has the name of that one, and may be the pod's own zone.
  const others = cached.blocking.filter(({ zone }) => zone.name !== own.name);
  const enough = (blocking: readonly BlockingPod[], needed: number, where: string): DenialCheck | undefined =>
    blocking.length >= needed && needed <= mostReads
      ? { own, blocking: blocking.slice(0, mostReads), needed, where }
      : undefined;
  if (budget.partitionOf) {
    const partition = budget.partitionOf(podName);
    if (partition === undefined) return undefined;
    const peers = others.filter(({ pod }) => budget.partitionOf?.(pod) === partition);
    return enough(peers, max, `partition ${partition}`);
  }
  const [first] = others;
  if (first)
    return enough(
      others.filter(({ zone }) => zone.uid === first.zone.uid),
      1,
      first.zone.name,
    );
  // A percentage refers to the replicas that the zone has now, which are not read again.
  if ("percent" in budget.allowance) return undefined;
  return enough(
    cached.blocking.filter(({ pod, zone }) => zone.uid === own.uid && pod !== podName),
    max,
    own.name,
  );
}

/** The budget is 0 for any number of replicas. */
function isZero({ allowance }: Budget): boolean {
  return "pods" in allowance ? allowance.pods === 0 : allowance.percent === 0;
}

/**
 * The message of the denial if enough of the blocking pods are still unavailable; undefined if the whole budget has to
 * be read.
 */
export function checkDenial({ needed, where }: DenialCheck, reread: readonly Reread[], view: View): string | undefined {
  if (needed === 0) return "max unavailable = 0";
  const notReady = reread.filter(
    ({ pod, blocker }) => pod && pod.owner === blocker.zone.uid && !isReady(pod, view),
  ).length;
  const unknown = reread.filter(({ pod, blocker, zone }) => !pod && zone && isExpected(blocker, zone)).length;
  return notReady + unknown >= needed ? describeUnavailability({ notReady, leaving: 0, unknown }, where) : undefined;
}

/** The zone has the same UID as before and should have the pod. */
function isExpected({ pod, zone: seen }: BlockingPod, zone: Zone): boolean {
  const ordinal = Number(pod.slice(zone.name.length + 1));
  const end = zone.firstOrdinal + Math.max(zone.replicas, zone.status.replicas);
  return zone.uid === seen.uid && !zone.terminating && ordinal >= zone.firstOrdinal && ordinal < end;
}
