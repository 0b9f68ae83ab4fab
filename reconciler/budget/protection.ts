/**
 * What a disruption budget protects now, for its status (§5.10): its zones, by the statuses of their StatefulSets, and
 * the condition `Protecting`. It informs; no decision reads it. Pure.
 */
import { type Condition, stampCondition } from "../../infra/kubernetes/condition.ts";
import type { Zone } from "../model/zone.ts";
import type { Guard } from "./guard.ts";
import type { BudgetProblem } from "./partition.ts";
import type { Budget } from "./zpdb.ts";

export interface Protection {
  readonly observedGeneration: number;
  readonly zones: readonly ProtectedZone[];
  /** The condition `Protecting`, alone. */
  readonly conditions: readonly ProtectionCondition[];
}

interface ProtectedZone {
  readonly name: string;
  /** Pods that it is to have, and how many of them are ready. */
  readonly expected: number;
  readonly healthy: number;
  /** Its StatefulSet is gone, or not under the budget: these are the pods that are left. */
  readonly orphaned?: true;
}

interface ProtectionCondition extends Condition {
  readonly type: "Protecting";
  readonly status: "True" | "False" | "Unknown";
  readonly reason: "Protecting" | "Invalid" | "SelectsNothing" | "TooFewZones" | Exclude<Guard["reason"], "Guarded">;
}

interface ProtectionInput {
  readonly content: Budget | BudgetProblem;
  readonly generation: number;
  /** The StatefulSets that it selects, and orphaned zones, in byte order of their names. */
  readonly zones: readonly Zone[];
  readonly guard: Guard;
  /** As it is stored. */
  readonly earlier: Partial<Protection>;
  readonly now: number;
}

export function describeProtection(input: ProtectionInput): Protection {
  const { content, generation } = input;
  const zones = "problem" in content ? [] : input.zones.map(describeZone);
  return { observedGeneration: generation, zones, conditions: [describeCondition(input)] };
}

function describeZone({ name, replicas: expected, status, orphaned }: Zone): ProtectedZone {
  return { name, expected, healthy: Math.min(expected, status.ready), ...(orphaned && { orphaned: true }) };
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
