/** The facts of evictions: by default three zones of three healthy pods, and a budget of 1. */
import assert from "node:assert/strict";
import type { DisruptionBudget } from "../../../infra/kubernetes/custom-resources.ts";
import type { PodObject, StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { Verdict } from "../../../reconciler/budget/verdict.ts";
import { type Budget, parseBudget } from "../../../reconciler/budget/zpdb.ts";
import { podObjects, statefulSetObject, traitsOf, type ZoneTraits } from "../builders.ts";
import { type Facts, startProcess } from "./adapter.ts";
import { make } from "../../builders.ts";

export const NOW = Date.parse("2026-01-01T12:00:00Z");
export const PARTITIONS = { podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)" };

export function budgetObject(spec: object = {}, name = "ingester"): object {
  return make("ZoneAwarePodDisruptionBudget", name, {
    namespace: "test",
    metadata: { uid: `uid-${name}`, resourceVersion: "1", generation: 1 },
    spec: { selector: { matchLabels: { "rollout-group": "ingester" } }, ...spec },
  });
}

export function budget(spec: object = {}): Budget {
  const parsed = parseBudget(budgetObject(spec));
  assert.ok(!("problem" in parsed), JSON.stringify(parsed));
  return parsed;
}

/** Labels by which the budget of a case selects, whatever the group. */
const UNDER = { guarded: "yes" };

/** The same object, selected by the budget of a case. */
export function guarded<T extends PodObject | StatefulSet>(object: T): T {
  return { ...object, metadata: { ...object.metadata, labels: { ...object.metadata?.labels, ...UNDER } } };
}

export interface Case {
  /** `zone-b-1` of `ingester-zone-b-1`; `zone-a-0` by default. */
  readonly pod?: string;
  readonly spec?: object;
  /** By letter, as a sketch (`sketch` in ../builders.ts) or by traits; zones a, b and c by default. */
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

type Disruption = "eviction" | "unpinned eviction" | "rollout";

/** The reservation of a pod, as it is stored. */
export function reservationOf(name: string, at = NOW, disruption: Disruption = "eviction"): object {
  const pinned = disruption !== "unpinned eviction";
  const kind = disruption === "rollout" ? "rollout" : "eviction";
  return { [name]: { kind, uid: `uid-${name}`, pinned, time: new Date(at).toISOString(), by: "another" } };
}

/** What the cluster has in this case. */
export function factsOf(one: Omit<Case, "pod">): Facts {
  const { spec, zones = {}, reserved = [], now = NOW, reservedFor, reservedMs = 0 } = one;
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

/** A budget with what is reserved on it. */
export function storedBudget(
  spec: object = {},
  reservations: readonly object[] = [],
  name = "ingester",
): DisruptionBudget {
  const object = budgetObject({ selector: { matchLabels: UNDER }, ...spec }, name);
  return { ...object, status: { disruptedPods: Object.assign({}, ...reservations) } } as DisruptionBudget;
}

/** Asks about the pod of the case, with these facts. */
export async function decide(one: Case, facts = factsOf(one)): Promise<Verdict> {
  const { pod = "zone-a-0", rollout, unpinned } = one;
  return await startProcess(facts).evict({ pod: `ingester-${pod}`, rollout, unpinned });
}
