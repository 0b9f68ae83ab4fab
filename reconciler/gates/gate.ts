/**
 * A RolloutGate: checks that a rollout group must pass before its first zone, between its zones, or before it counts as
 * settled.
 */
import * as z from "zod";
import { cut } from "../../infra/cut.ts";
import type { CustomObject } from "../../infra/kubernetes/custom-resources.ts";
import { baselineFields } from "../checks/baseline.ts";
import { checkFields } from "../checks/check.ts";
import type { NamedCheck, OnError } from "../checks/result.ts";
import type { ObjectRef } from "../model/decision.ts";
import { readIdentity } from "../../infra/kubernetes/identity.ts";
import type { Condition } from "../../infra/kubernetes/condition.ts";
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
  /** `Observe`: the gate holds nothing, and only reports its verdicts. */
  readonly mode: "Enforce" | "Observe";
  /** The least time between the end of a zone and the begin of the next one. */
  readonly soakSeconds: number;
  /** None for a gate that only soaks, or whose spec cannot be read. */
  readonly checks: readonly NamedCheck[];
  /** The value of the annotation that asks a failed gate again. */
  readonly retry: string | undefined;
  /** The record of the rollout in the status; undefined before the first rollout. */
  readonly record: GateRecord | undefined;
  readonly conditions: readonly Condition[];
}

/** True if the gate has a check or a soak time: a gate that cannot be read has neither, and never opens. */
export const isReadable = ({ checks, soakSeconds }: Pick<Gate, "checks" | "soakSeconds">): boolean =>
  checks.length > 0 || soakSeconds > 0;

/** When the soak time of a stage is over, milliseconds since the epoch. */
export const soakEnd = ({ soakSeconds }: Pick<Gate, "soakSeconds">, { since }: { readonly since: number }): number =>
  since + soakSeconds * 1000;

export const RETRY_ANNOTATION = "zonewise.dev/retry-gate";
/** What is read of it, and stored. */
const MAX_RETRY_LENGTH = 100;

const Check = checkFields
  .extend({
    failureThreshold: z.number().optional(),
    successWhen: z.enum(["NoData", "Data", "WithinBaseline"]),
    baseline: baselineFields.optional(),
  })
  .refine(({ successWhen, baseline }) => (successWhen === "WithinBaseline") === (baseline !== undefined));

const Spec = z.object({
  group: z.string(),
  when: z.array(z.enum(POINTS)).default(["BetweenZones"]),
  onError: z.enum(["Wait", "Proceed"]).default("Wait"),
  mode: z.enum(["Enforce", "Observe"]).default("Enforce"),
  soakSeconds: z.number().min(0).default(0),
  checks: z.array(Check).max(16).default([]),
});

const Named = z.object({ group: z.string() });

/** The spec of a gate that never opens. */
const UNREADABLE = { when: POINTS, onError: "Wait", mode: "Enforce", soakSeconds: 0, checks: [] } as const;

/**
 * Reads a gate; undefined if it names no group. The definition refuses a spec that cannot be read. If an older
 * definition accepted it, the gate has no checks and never opens.
 */
export function readGate({ metadata, spec, status }: CustomObject): Gate | undefined {
  const group = Named.safeParse(spec).data?.group;
  if (group === undefined) return undefined;
  const { resourceVersion, ...identity } = readIdentity(metadata);
  const retry = metadata.annotations?.[RETRY_ANNOTATION];
  const settings = Spec.safeParse(spec).data ?? { ...UNREADABLE, group };
  return {
    ...settings,
    ref: { kind: "RolloutGate", ...identity },
    resourceVersion,
    generation: metadata.generation ?? 0,
    ...readRecord(status),
    conditions: readConditions(status),
    retry: retry === undefined ? undefined : cut(retry, MAX_RETRY_LENGTH),
  };
}
