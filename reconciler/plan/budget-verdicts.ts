/** The verdicts of a world's disruption budgets on a pod that is to go. */
import type { Pod } from "../model/pod.ts";
import type { ZoneWithPods } from "../model/zone.ts";
import { decideEviction, type EvictionSnapshot } from "../budget/decide-eviction.ts";
import { decideDownscale } from "../budget/decide-downscale.ts";
import { livingReservations, presentIn, type Reservations } from "../budget/reservation.ts";
import { type Budget, findBudget, findBudgetsOfZone, selectsLabels, type DisruptionTarget } from "../budget/zpdb.ts";
import { holdDownscale, isAllowed, type Verdict } from "../budget/verdict.ts";
import type { Hold } from "../model/decision.ts";
import { byName } from "../model/order.ts";
import type { World, WorldBudget } from "./world.ts";

/**
 * The disruption to judge: by the rollout, by an eviction, or, without either, by an eviction that is not pinned to a
 * UID.
 */
interface Disruption extends DisruptionTarget {
  /** The rollout, with its own limit. */
  readonly rollout?: { readonly maxUnavailable: number };
}

/** A verdict, with its snapshot if a budget selects the pod. */
export interface JudgedDisruption {
  readonly verdict: Verdict;
  readonly snapshot?: EvictionSnapshot;
}

export function judgeDisruption(world: World, pod: Pod, { rollout, ...target }: Disruption = {}): JudgedDisruption {
  const budget = findBudget(pod, world.budgets, target);
  if ("reason" in budget) return { verdict: budget };
  const found = world.budgets.find(({ content }) => content === budget);
  const zones = zonesOf(world, budget, found);
  const reservations = livingReservations(found?.reservations ?? {}, presentIn(zones), world.now);
  const snapshot = { now: world.now, pod, budget, zones, reservations, rollout, unpinned: target.unpinned };
  return { verdict: decideEviction(snapshot), snapshot };
}

/** Why a zone may not shrink to so many replicas, if a budget denies it (§5.11). */
export function judgeDownscale(world: World, zone: ZoneWithPods, replicas: number): Hold | undefined {
  const found = findBudgetsOfZone(zone, world.budgets);
  if ("reason" in found) return holdDownscale(found, zone);
  for (const budget of found) {
    if ("problem" in budget.content) continue;
    const zones = zonesOf(world, budget.content, budget);
    const reservations = livingReservations(budget.reservations, presentIn(zones), world.now);
    const from = zone.firstOrdinal + replicas;
    const verdict = decideDownscale({
      now: world.now,
      budget: budget.content,
      zones,
      reservations,
      uid: zone.uid,
      from,
    });
    if (!isAllowed(verdict)) return holdDownscale(verdict, zone);
  }
  return undefined;
}

/** The zones that the budget selects, in byte order of their names. */
function zonesOf({ zones }: World, selecting: Budget, budget: WorldBudget | undefined): readonly ZoneWithPods[] {
  return [...zones.filter(({ labels }) => selectsLabels(selecting, labels)), ...(budget?.others ?? [])].toSorted(
    byName,
  );
}

/** The world in which the pod was reserved for the rollout. */
export function reserve(world: World, pod: Pod): World {
  const time = new Date(world.now).toISOString();
  const own: Reservations = { [pod.name]: { kind: "rollout", uid: pod.uid, pinned: true, time, by: "a look ahead" } };
  const budgets = world.budgets.map((one) =>
    selectsLabels(one, pod.labels) ? { ...one, reservations: { ...one.reservations, ...own } } : one,
  );
  return { ...world, budgets };
}
