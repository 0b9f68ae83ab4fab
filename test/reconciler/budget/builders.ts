/** Snapshots of evictions: by default three zones of three healthy pods, and a budget of 1. */
import assert from "node:assert/strict";
import { decideEviction } from "../../../reconciler/budget/decide-eviction.ts";
import { type BudgetZone, type BudgetPod, readBudgetPod } from "../../../reconciler/budget/budget-pod.ts";
import type { EvictionSnapshot } from "../../../reconciler/budget/unavailability.ts";
import type { Verdict } from "../../../reconciler/budget/verdict.ts";
import { type Budget, parseBudget } from "../../../reconciler/budget/zpdb.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { podObjects, statefulSetObject, type ZoneTraits } from "../builders.ts";

export const NOW = Date.parse("2026-01-01T12:00:00Z");
export const PARTITIONS = { podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)" };

export function budgetObject(spec: object = {}, name = "ingester"): object {
  return {
    apiVersion: "rollout-operator.grafana.com/v1",
    kind: "ZoneAwarePodDisruptionBudget",
    metadata: { namespace: "test", name, uid: `uid-${name}`, resourceVersion: "1", generation: 1 },
    spec: { selector: { matchLabels: { "rollout-group": "ingester" } }, ...spec },
  };
}

export function budget(spec: object = {}): Budget {
  const parsed = parseBudget(budgetObject(spec));
  assert.ok(!("problem" in parsed), JSON.stringify(parsed));
  return parsed;
}

/** Pods of every zone, with the labels that the budget selects. */
export function budgetPods(traits: ZoneTraits): BudgetPod[] {
  return podObjects(traits).map((object) => {
    const labels = { ...object.metadata?.labels, "rollout-group": "ingester" };
    return readBudgetPod({ ...object, metadata: { ...object.metadata, labels } });
  });
}

export interface Case {
  /** `zone-a-0` of `ingester-zone-a-0`. */
  readonly pod: string;
  readonly spec?: object;
  /** By letter; zones a, b and c by default. */
  readonly zones?: Readonly<Record<string, ZoneTraits>>;
  /** The reserved pods. */
  readonly reserved?: readonly string[];
  readonly rollout?: number;
  /** The eviction names the pod without a UID. */
  readonly unpinned?: boolean;
  readonly now?: number;
  /** The process that made the reservations, and their age in milliseconds. */
  readonly reservedBy?: string;
  readonly reservedFor?: number;
}

export function snapshot({
  pod,
  spec = {},
  zones = {},
  reserved = [],
  rollout,
  unpinned,
  now = NOW,
  reservedBy = "test",
  reservedFor = 0,
}: Case): EvictionSnapshot {
  const all = Object.entries({ a: {}, b: {}, c: {}, ...zones }).map(([letter, traits]): BudgetZone => {
    const named: ZoneTraits = { name: `ingester-zone-${letter}`, ...traits };
    return { ...readZone(statefulSetObject(named)), pods: budgetPods(named) };
  });
  const name = `ingester-${pod}`;
  const found = all.flatMap((zone) => zone.pods).find((one) => one.name === name);
  assert.ok(found, name);
  return {
    now,
    by: "test",
    pod: found,
    budget: budget(spec),
    zones: all,
    reservations: Object.fromEntries(
      reserved.map((one) => [
        `ingester-${one}`,
        { uid: `uid-ingester-${one}`, time: new Date(now - reservedFor).toISOString(), by: reservedBy },
      ]),
    ),
    unpinned,
    ...(rollout !== undefined && { rollout: { maxUnavailable: rollout } }),
  };
}

export function decide(one: Case): Verdict {
  return decideEviction(snapshot(one));
}
