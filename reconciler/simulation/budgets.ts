/** What the disruption budgets of a world say to a pod that is to go. */
import type { BudgetPod, BudgetZone } from "../budget/budget-pod.ts";
import { decideEviction } from "../budget/decide.ts";
import { livingReservations, type Reservations } from "../budget/reservation.ts";
import { findBudget, type DisruptionTarget } from "../budget/scope.ts";
import { matchesLabels } from "../budget/selector.ts";
import type { EvictionSnapshot } from "../budget/unavailability.ts";
import type { Verdict } from "../budget/verdict.ts";
import type { Budget } from "../budget/zpdb.ts";
import { byName } from "../model/order.ts";
import type { World, WorldBudget } from "./world.ts";

/** Who is asking: the rollout, an eviction, or neither for an eviction that is not pinned to a UID. */
export interface Disruption extends DisruptionTarget {
  /** The rollout, with its own limit. */
  readonly rollout?: { readonly maxUnavailable: number };
}

/** A verdict, and what it was decided from, if a budget selects the pod. */
export interface Judged {
  readonly verdict: Verdict;
  readonly snapshot?: EvictionSnapshot;
}

/** The identity of nobody: a look ahead has no reservations of its own. */
const BY = "simulation";

export function judgeDisruption(world: World, pod: BudgetPod, { rollout, ...target }: Disruption = {}): Judged {
  const budget = findBudget(pod, world.budgets, target);
  if ("reason" in budget) return { verdict: budget };
  const found = world.budgets.find(({ content }) => content === budget);
  const zones = zonesOf(world, budget, found);
  const uids = new Map(zones.flatMap((zone) => zone.pods).map(({ name, uid }) => [name, uid]));
  const reservations = livingReservations(found?.reservations ?? {}, (name) => uids.get(name), world.now);
  const snapshot = { now: world.now, pod, budget, zones, reservations, by: BY, rollout, unpinned: target.unpinned };
  return { verdict: decideEviction(snapshot), snapshot };
}

/** The zones that the budget selects, in byte order of their names. */
function zonesOf({ zones }: World, { matchLabels }: Budget, budget: WorldBudget | undefined): readonly BudgetZone[] {
  return [...zones.filter(({ labels }) => matchesLabels(matchLabels, labels)), ...(budget?.others ?? [])].toSorted(byName);
}

/** The world in which the pod was reserved for the rollout. */
export function reserve(world: World, pod: BudgetPod): World {
  const own: Reservations = { [pod.name]: { uid: pod.uid, time: new Date(world.now).toISOString(), by: BY } };
  const selects = ({ matchLabels }: WorldBudget): boolean => matchLabels !== undefined && matchesLabels(matchLabels, pod.labels);
  const budgets = world.budgets.map((one) => (selects(one) ? { ...one, reservations: { ...one.reservations, ...own } } : one));
  return { ...world, budgets };
}
