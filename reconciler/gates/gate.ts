/**
 * A RolloutGate: checks that a rollout group must pass before its first zone, between its zones, or before it counts as
 * settled.
 */
import * as z from "zod";
import type { RolloutGate } from "../../infra/kubernetes/resources.ts";
import { checkFields } from "../checks/check.ts";
import type { NamedCheck, OnError } from "../checks/result.ts";
import type { ObjectRef } from "../model/decision.ts";
import { readIdentity } from "../model/identity.ts";
import type { Condition } from "../model/condition.ts";
import { POINTS, type Point, readConditions, readRecord, type GateRecord } from "./record.ts";

export interface Gate {
  readonly ref: ObjectRef;
  readonly resourceVersion: string;
  readonly generation: number;
  /** The generation that the status describes. */
  readonly observedGeneration: number | undefined;
  /** The value of `rollout-group` of the zones, in the gate's namespace. */
  readonly group: string;
  readonly when: readonly Point[];
  readonly onError: OnError;
  /** A gate that observes reports what it would have done. */
  readonly mode: "Enforce" | "Observe";
  readonly checks: readonly NamedCheck[];
  /** The value of the annotation that asks a failed gate again. */
  readonly retry: string | undefined;
  /** What the status says of the rollout; undefined before the first. */
  readonly record: GateRecord | undefined;
  readonly conditions: readonly Condition[];
}

export const RETRY_ANNOTATION = "zonewise.dev/retry-gate";

const Check = checkFields.extend({ failureThreshold: z.number().optional() });

const Spec = z.object({
  group: z.string(),
  when: z.array(z.enum(POINTS)).default(["BetweenZones"]),
  onError: z.enum(["Wait", "Proceed"]).default("Wait"),
  mode: z.enum(["Enforce", "Observe"]).default("Enforce"),
  checks: z.array(Check).min(1),
});

/**
 * Reads a gate; undefined if it names no group. The definition refuses what cannot be read; where an older definition
 * let it in, the gate has no checks and never opens.
 */
export function readGate({ metadata, spec, status }: RolloutGate): Gate | undefined {
  const group = z.object({ group: z.string() }).safeParse(spec).data?.group;
  if (group === undefined) return undefined;
  const { resourceVersion, ...identity } = readIdentity(metadata);
  const settings = Spec.safeParse(spec).data ?? { group, when: POINTS, onError: "Wait", mode: "Enforce", checks: [] };
  return {
    ...settings,
    ref: { kind: "RolloutGate", ...identity },
    resourceVersion,
    generation: metadata.generation ?? 0,
    ...readRecord(status),
    conditions: readConditions(status),
    retry: metadata.annotations?.[RETRY_ANNOTATION],
  };
}
