/**
 * The record of the rollout in the status of a gate. It is read before each decision, so that it outlives processes.
 * Times in milliseconds since the epoch.
 */
import * as z from "zod";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { formatResult, readResults, storedResult } from "../checks/result.ts";
import { type Condition, storedCondition } from "../../infra/kubernetes/condition.ts";

export const POINTS = ["BeforeFirstZone", "BetweenZones", "AfterLastZone"] as const;
/** When a gate is asked. */
export type Point = (typeof POINTS)[number];

const TIME = z.string().transform((text, context) => {
  const ms = parseTimestamp(text);
  if (ms !== undefined) return ms;
  context.addIssue("no timestamp");
  return z.NEVER;
});

/** One stage at which the gate is asked: before `zone`, or after the last zone. */
const STAGE = z
  .object({
    point: z.enum(POINTS),
    /** "" after the last zone. */
    zone: z.string(),
    /** When the rollout first wanted to continue: the zone before was done. Initial delays begin then. */
    since: TIME,
    /** `Bypassed`: the zone begins without its checks, as a person wants it. */
    state: z.enum(["Waiting", "Passed", "Failed", "Bypassed"]),
    checks: z.array(storedResult).default([]),
  })
  .transform((stage) => ({ ...stage, checks: readResults(stage.checks, stage.since) }));
export type Stage = Readonly<z.output<typeof STAGE>>;

const COUNT = z.int().min(0);
const ZONE = z.object({
  name: z.string(),
  /** Its update revision when the group was last settled: a way back there is always open. */
  settledRevision: z.string(),
  /** The gate has let it begin: in this rollout, or in an earlier one that was never finished. */
  began: z.enum(["Now", "Earlier"]).optional(),
  /**
   * Its pods when it was let begin in this rollout: of the current revision, of the update revision, and those that
   * were not ready. While they do not change, its pass gets old.
   */
  counts: z.object({ current: COUNT, updated: COUNT, notReady: COUNT }).optional(),
});
export type ZoneRecord = Readonly<z.output<typeof ZONE>>;

/** The zone as one that began then, or has not begun. */
export const withBegan = ({ name, settledRevision }: ZoneRecord, began: "Earlier" | undefined): ZoneRecord => ({
  name,
  settledRevision,
  ...(began && { began }),
});

/** The verdict of a gate on the bypass of a zone. */
const BYPASS = z.object({
  zone: z.string(),
  /** The value as it was written: an RFC 3339 timestamp. */
  until: z.string(),
  /** False if it was too far ahead when the gate saw it first. */
  accepted: z.boolean(),
  reason: z.string().optional(),
});
export type BypassRecord = Readonly<z.output<typeof BYPASS>>;

export interface GateRecord {
  /** Names the rollout: a hash of the update revisions of all zones. */
  readonly identity: string;
  readonly startedAt: number;
  /** Undefined while the rollout continues. */
  readonly settledAt?: number | undefined;
  /** The annotation's value that has been obeyed. */
  readonly retried?: string | undefined;
  readonly zones: readonly ZoneRecord[];
  readonly stages: readonly Stage[];
  /** The verdicts on the bypasses that the zones have. */
  readonly bypasses: readonly BypassRecord[];
}

const RECORD = z.object({
  identity: z.string(),
  startTime: TIME,
  settledTime: TIME.optional(),
  retried: z.string().optional(),
  zones: z.array(ZONE).default([]),
  stages: z.array(STAGE).default([]),
  bypasses: z.array(BYPASS).default([]),
});
const OBSERVED = z.object({ observedGeneration: z.number().optional() });
const CONDITIONS = z.object({ conditions: z.array(storedCondition) });

/**
 * Reads a status. An unreadable one counts as none: the gate asks again. A result that is older than its
 * stage or its rollout counts as none, too.
 */
export function readRecord(status: unknown): {
  readonly observedGeneration: number | undefined;
  readonly record: GateRecord | undefined;
} {
  const { observedGeneration } = OBSERVED.safeParse(status).data ?? {};
  const read = RECORD.safeParse(status).data;
  if (!read) return { observedGeneration, record: undefined };
  const { startTime: startedAt, settledTime: settledAt, ...record } = read;
  const stages = record.stages.filter(({ since }) => since >= startedAt);
  return { observedGeneration, record: { ...record, startedAt, settledAt, stages } };
}

/** The conditions of a status; none if they cannot be read. */
export function readConditions(status: unknown): readonly Condition[] {
  return CONDITIONS.safeParse(status).data?.conditions ?? [];
}

/** The record as a status. */
export function formatRecord({ identity, startedAt, settledAt, retried, zones, stages, bypasses }: GateRecord): object {
  return {
    identity,
    startTime: formatTimestamp(startedAt),
    ...(settledAt !== undefined && { settledTime: formatTimestamp(settledAt) }),
    ...(retried !== undefined && { retried }),
    zones,
    stages: stages.map(({ since, checks, ...stage }) => ({
      ...stage,
      since: formatTimestamp(since),
      checks: checks.map(formatResult),
    })),
    ...(bypasses.length > 0 && { bypasses }),
  };
}

/** The parts of a record that let the rollout continue, without the results of checks. */
export function outlineOf(record: GateRecord | undefined): string {
  const stages = record?.stages.map(({ point, zone, state }) => [point, zone, state]);
  return JSON.stringify([record?.identity, record?.settledAt, record?.zones, stages, record?.bypasses ?? []]);
}
