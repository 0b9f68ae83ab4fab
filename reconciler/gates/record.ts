/**
 * The record of the rollout in the status of a gate. It is read before each decision, so that it outlives processes.
 * Times in milliseconds since the epoch.
 */
import * as z from "zod";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { formatResult, type NamedResult, readResults, storedResult } from "../checks/result.ts";
import type { Condition } from "../../infra/kubernetes/condition.ts";
import type { BypassRecord } from "./bypass.ts";

export const POINTS = ["BeforeFirstZone", "BetweenZones", "AfterLastZone"] as const;
/** When a gate is asked. */
export type Point = (typeof POINTS)[number];

/** One stage at which the gate is asked: before `zone`, or after the last zone. */
export interface Stage {
  readonly point: Point;
  /** "" after the last zone. */
  readonly zone: string;
  /** When the rollout first wanted to go on: the zone before was done. Initial delays begin then. */
  readonly since: number;
  /** `Bypassed`: the zone begins without its checks, as a person wants it. */
  readonly state: "Waiting" | "Passed" | "Failed" | "Bypassed";
  readonly checks: readonly NamedResult[];
}

export interface ZoneRecord {
  readonly name: string;
  /** Its update revision when the group was last settled: a way back there is always open. */
  readonly settledRevision: string;
  /** The gate has let it begin: in this rollout, or in an earlier one that was never finished. */
  readonly began?: "Now" | "Earlier" | undefined;
  /** Its pods when it was let begin in this rollout. While they do not change, its pass gets old. */
  readonly counts?: PodCounts | undefined;
}

/** Pods of a zone: of the current revision, of the update revision, and those that are not ready. */
interface PodCounts {
  readonly current: number;
  readonly updated: number;
  readonly notReady: number;
}

/** The zone as one that began then, or has not begun. */
export const withBegan = ({ name, settledRevision }: ZoneRecord, began: "Earlier" | undefined): ZoneRecord => ({
  name,
  settledRevision,
  ...(began && { began }),
});

export interface GateRecord {
  /** Names the rollout: a hash of the update revisions of all zones. */
  readonly identity: string;
  readonly startedAt: number;
  /** Undefined while the rollout goes on. */
  readonly settledAt?: number | undefined;
  /** The annotation's value that has been obeyed. */
  readonly retried?: string | undefined;
  readonly zones: readonly ZoneRecord[];
  readonly stages: readonly Stage[];
  /** The verdicts on the bypasses that the zones have. */
  readonly bypasses: readonly BypassRecord[];
}

const Time = z.string().transform((text, context) => {
  const ms = parseTimestamp(text);
  if (ms !== undefined) return ms;
  context.addIssue("no timestamp");
  return z.NEVER;
});
const Result = storedResult.extend({ totalFailures: z.int().min(0).default(0) });
const StatusStage = z.object({
  point: z.enum(["BeforeFirstZone", "BetweenZones", "AfterLastZone"]),
  zone: z.string(),
  since: Time,
  state: z.enum(["Waiting", "Passed", "Failed", "Bypassed"]),
  checks: z.array(Result).default([]),
});
const Count = z.int().min(0);
const StatusZone = z.object({
  name: z.string(),
  settledRevision: z.string(),
  began: z.enum(["Now", "Earlier"]).optional(),
  counts: z.object({ current: Count, updated: Count, notReady: Count }).optional(),
});
const StatusBypass = z.object({
  zone: z.string(),
  until: z.string(),
  accepted: z.boolean(),
  reason: z.string().optional(),
});
const Status = z.object({
  observedGeneration: z.number().optional(),
  identity: z.string(),
  startTime: Time,
  settledTime: Time.optional(),
  retried: z.string().optional(),
  zones: z.array(StatusZone).default([]),
  stages: z.array(StatusStage).default([]),
  bypasses: z.array(StatusBypass).default([]),
});
const Observed = z.object({ observedGeneration: z.number().optional() });
const Conditions = z.object({
  conditions: z.array(
    z.object({
      type: z.string(),
      status: z.enum(["True", "False", "Unknown"]),
      reason: z.string(),
      message: z.string(),
      lastTransitionTime: z.string(),
      observedGeneration: z.number().default(0),
    }),
  ),
});

/**
 * Reads a status. An unreadable one counts as none: the gate asks again. A result that is older than its
 * stage or its rollout counts as none, too.
 */
export function readRecord(status: unknown): {
  readonly observedGeneration: number | undefined;
  readonly record: GateRecord | undefined;
} {
  const { observedGeneration } = Observed.safeParse(status).data ?? {};
  const read = Status.safeParse(status).data;
  if (!read) return { observedGeneration, record: undefined };
  const { identity, startTime: startedAt, settledTime: settledAt, retried, zones, bypasses } = read;
  const stages = read.stages
    .filter(({ since }) => since >= startedAt)
    .map((stage) => ({ ...stage, checks: readResults(stage.checks, stage.since) }));
  return { observedGeneration, record: { identity, startedAt, settledAt, retried, zones, stages, bypasses } };
}

/** The conditions of a status; none if they cannot be read. */
export function readConditions(status: unknown): readonly Condition[] {
  return Conditions.safeParse(status).data?.conditions ?? [];
}

/** The record as a status. Absent fields are null, which removes them in a merge patch. */
export function formatRecord({ identity, startedAt, settledAt, retried, zones, stages, bypasses }: GateRecord): object {
  return {
    identity,
    startTime: formatTimestamp(startedAt),
    settledTime: settledAt === undefined ? null : formatTimestamp(settledAt),
    retried: retried ?? null,
    zones,
    stages: stages.map(({ since, checks, ...stage }) => ({
      ...stage,
      since: formatTimestamp(since),
      checks: checks.map((result) => ({ ...formatResult(result), totalFailures: result.streak.totalFailures })),
    })),
    bypasses: bypasses.length > 0 ? bypasses : null,
  };
}

/** The parts of a record that let the rollout go on, without the results of checks. */
export function outlineOf(record: GateRecord | undefined): string {
  const stages = record?.stages.map(({ point, zone, state }) => [point, zone, state]);
  return JSON.stringify([record?.identity, record?.settledAt, record?.zones, stages, record?.bypasses ?? []]);
}
