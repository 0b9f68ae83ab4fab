/** The facts of evictions: by default three zones of three healthy pods, and a budget of 1. */
import type { Verdict } from "../../../reconciler/budget/verdict.ts";
import { type Disruption, guarded, reservationOf, storedBudget } from "../../builders/budgets.ts";
import { NOON, podObjects, statefulSetObject, traitsOf, type ZoneTraits } from "../../builders/zones.ts";
import { type Facts, startProcess } from "./adapter.ts";

export interface Case {
  /** `zone-b-1` of `ingester-zone-b-1`; `zone-a-0` by default. */
  readonly pod?: string;
  readonly spec?: object;
  /** By letter, as a sketch (`sketch` in test/builders/zones.ts) or by traits; zones a, b and c by default. */
  readonly zones?: Readonly<Record<string, ZoneTraits | string>>;
  /** The reserved pods. */
  readonly reserved?: readonly string[];
  /** The rollout asks, with so many pods of a zone at once. */
  readonly rollout?: number;
  /** The eviction names the pod without a UID. */
  readonly unpinned?: boolean;
  readonly now?: number;
  /** What the pods were reserved for by another process, and how long ago in milliseconds. */
  readonly reservedFor?: Disruption;
  readonly reservedMs?: number;
}

/** What the cluster has in this case. */
export function factsOf(one: Omit<Case, "pod">): Facts {
  const { spec, zones = {}, reserved = [], now = NOON, reservedFor, reservedMs = 0 } = one;
  const all = Object.entries({ a: {}, b: {}, c: {}, ...zones }).map(([letter, zone]): ZoneTraits => ({
    name: `ingester-zone-${letter}`,
    ...traitsOf(zone),
  }));
  const entries = reserved.map((pod) => reservationOf(`ingester-${pod}`, now - reservedMs, reservedFor));
  return {
    now,
    budgets: [storedBudget(spec, entries)],
    statefulSets: all.map(statefulSetObject).map(guarded),
    pods: all.flatMap(podObjects).map(guarded),
  };
}

/** Asks about the pod of the case, with these facts. */
export async function decide(one: Case, facts = factsOf(one)): Promise<Verdict> {
  const { pod = "zone-a-0", rollout, unpinned } = one;
  return await startProcess(facts).evict({ pod: `ingester-${pod}`, rollout, unpinned });
}
