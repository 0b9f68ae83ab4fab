/**
 * The log lines of an outcome and of a tick, and what is remembered of a group from tick to tick, as a hint only: the
 * log says the same thing once, and Events tell how long a hold has lasted. Pure.
 */
import type { LogFields, LogLevel } from "../../infra/log.ts";
import { dedupKeyOf, factsOf } from "../model/decision.ts";
import { isFailure, type Outcome, type TickResult, holdsOf, isLeftOut } from "../model/outcome.ts";
import { isZoneRecorded, type Zone } from "../model/zone.ts";

/**
 * The log lines of one outcome: new scaling holds, new notes, and the state if it has changed or an action was taken.
 */
export function linesOf(outcome: Outcome, earlier: GroupMemory | undefined): LogLine[] {
  const { namespace, group, state } = outcome;
  const scalingHolds = outcome.scalingHolds.filter((hold) => !earlier?.holds.has(dedupKeyOf(hold)));
  const notes = outcome.notes.filter((note) => !earlier?.notes.includes(note.text));
  const line = describeOutcome(outcome);
  const isLogged = line.text === earlier?.text && state !== "acted";
  return [
    ...scalingHolds.map(({ reason, message }): LogLine => ({
      level: factsOf(reason).phase === "Blocked" ? "warn" : "info",
      text: message,
      fields: { namespace, group, reason },
    })),
    ...notes.map(({ level, text }): LogLine => ({ level, text, fields: { namespace, group } })),
    ...(isLogged ? [] : [{ ...line, fields: { namespace, group, state, ...line.fields } }]),
  ];
}

/** The most messages of scaling holds in the summary of a tick; all holds are counted. */
const MAX_MESSAGES = 20;

/** The fields of the summary line of a tick. */
export function summarizeTick({
  outcomes,
  skipped,
  underWay,
}: Pick<TickResult, "outcomes" | "skipped" | "underWay">): LogFields {
  const counts = { settled: 0, held: 0, acted: 0, superseded: 0, failed: 0 };
  for (const outcome of outcomes) counts[isFailure(outcome) ? "failed" : outcome.state]++;
  const replaced = outcomes.flatMap((outcome) => (outcome.state === "acted" ? outcome.effect.replaced : []));
  const scalingHolds = outcomes.flatMap((outcome) => outcome.scalingHolds.map(({ message }) => message));
  return {
    groups: outcomes.length,
    ...counts,
    replaced: replaced.length,
    ...(skipped > 0 && { skipped }),
    ...(underWay > 0 && { underWay }),
    ...(scalingHolds.length > 0 && { waiting: scalingHolds.length, waits: scalingHolds.slice(0, MAX_MESSAGES) }),
  };
}

interface LogLine {
  readonly level: LogLevel;
  readonly text: string;
  readonly fields?: LogFields;
}

/** Describes the state of the group; equal texts mean equal states. */
export function describeOutcome(outcome: Outcome): LogLine {
  switch (outcome.state) {
    case "settled":
      return { level: "debug", text: "all zones are updated and ready" };
    case "held":
      return {
        level: isFailure(outcome) ? "error" : "info",
        text: outcome.hold.message,
        fields: { reason: outcome.hold.reason },
      };
    case "acted":
      return describeAction(outcome);
    case "superseded":
      return {
        level: "warn",
        text: "the group changed meanwhile; the next tick decides again",
        fields: { error: outcome.error },
      };
    case "failed":
      return { level: "error", text: "the group could not be reconciled", fields: { error: outcome.error } };
    default:
      return outcome satisfies never;
  }
}

function describeAction({ decision, effect }: Extract<Outcome, { state: "acted" }>): LogLine {
  const pods = effect.replaced.map((pod) => pod.name);
  const { stopped } = effect;
  return {
    level: "info",
    text: decision.message,
    fields: {
      action: decision.action,
      zone: decision.zone.name,
      ...(pods.length > 0 && { pods }),
      ...(stopped !== undefined && { stopped }),
    },
  };
}

/**
 * The memory of a group between ticks; kept small, as there may be thousands of groups. A new process starts without
 * it.
 */
export interface GroupMemory extends Seen {
  readonly namespace: string;
  readonly group: string;
  /** The last logged text of its state. */
  readonly text: string;
  /** The texts of its last notes. */
  readonly notes: readonly string[];
  /** Ticks in a row, up to the last, in which it was superseded. */
  readonly timesSuperseded: number;
  /** When each hold began, monotonic milliseconds, by its dedupKey. */
  readonly holds: ReadonlyMap<string, number>;
}

/** The state of a rollout as seen before: by this process, or by an earlier one, through the group's status. */
export interface Seen {
  /** True if a pod of the group was replaced since the group was last settled. */
  readonly rolling: boolean;
  /** Zones that were not yet recorded at their update revision, by `revisionKey`. */
  readonly unfinished: ReadonlySet<string>;
}

/** A zone at its update revision: another template is another key. */
export const revisionKey = ({ uid, status }: Pick<Zone, "uid" | "status">): string => `${uid}/${status.updateRevision}`;

/** The memory after this outcome; `now` in monotonic milliseconds. */
export function remember(
  earlier: (Seen & Partial<GroupMemory>) | undefined,
  outcome: Outcome,
  now: number,
): GroupMemory {
  const { namespace, group, state } = outcome;
  const hasReplaced = state === "acted" && outcome.effect.replaced.length > 0;
  return {
    namespace,
    group,
    text: describeOutcome(outcome).text,
    notes: outcome.notes.map((note) => note.text),
    timesSuperseded: state === "superseded" ? outcome.times : isLeftOut(outcome) ? (earlier?.timesSuperseded ?? 0) : 0,
    holds: new Map(holdsOf(outcome).map((hold) => [dedupKeyOf(hold), earlier?.holds?.get(dedupKeyOf(hold)) ?? now])),
    unfinished: unfinishedAfter(earlier, outcome),
    rolling: hasReplaced || (state !== "settled" && earlier?.rolling === true),
  };
}

function unfinishedAfter(earlier: Seen | undefined, outcome: Outcome): ReadonlySet<string> {
  const { zones } = outcome;
  if (zones.length === 0) return earlier?.unfinished ?? new Set();
  const isFinishing = outcome.state === "acted" && outcome.decision.action === "finishZone";
  const finished = isFinishing ? outcome.decision.zone.uid : undefined;
  return new Set(zones.filter((zone) => !isZoneRecorded(zone) && zone.uid !== finished).map(revisionKey));
}
