/** What is logged of an outcome, and of a tick: pure functions of it and of what is remembered of the group. */
import type { LogFields } from "../../infra/log.ts";
import { dedupKeyOf, factsOf } from "../model/decision.ts";
import { describeOutcome, type LogLine } from "./describe.ts";
import type { GroupMemory } from "./memory.ts";
import { isFailure, type Outcome } from "./outcome.ts";

/** The lines of one outcome: scaling holds and notes that are new, and its state if that is another one or something was done. */
export function linesOf(outcome: Outcome, earlier: GroupMemory | undefined): LogLine[] {
  const { namespace, group, state } = outcome;
  const waits = outcome.waits.filter((wait) => !earlier?.holds.has(dedupKeyOf(wait)));
  const notes = outcome.notes.filter((note) => !earlier?.notes.includes(note.text));
  const line = describeOutcome(outcome);
  const isTold = line.text === earlier?.text && state !== "acted";
  return [
    ...waits.map(({ reason, message }): LogLine => ({
      level: factsOf(reason).needsFix ? "warn" : "info",
      text: message,
      fields: { namespace, group, reason },
    })),
    ...notes.map(({ level, text }): LogLine => ({ level, text, fields: { namespace, group } })),
    ...(isTold ? [] : [{ ...line, fields: { namespace, group, state, ...line.fields } }]),
  ];
}

/** Waits that the summary of a tick spells out; their number is logged in any case. */
const MOST_WAITS = 20;

/** The fields of the line that ends a tick. */
export function summarize(outcomes: readonly Outcome[], skipped: number): LogFields {
  const counts = { settled: 0, held: 0, acted: 0, superseded: 0, failed: 0 };
  for (const outcome of outcomes) counts[isFailure(outcome) ? "failed" : outcome.state]++;
  const replaced = outcomes.flatMap((outcome) => (outcome.state === "acted" ? outcome.effect.replaced : []));
  const waits = outcomes.flatMap((outcome) => outcome.waits.map(({ message }) => message));
  return {
    groups: outcomes.length,
    ...counts,
    replaced: replaced.length,
    ...(skipped > 0 && { skipped }),
    ...(waits.length > 0 && { waiting: waits.length, waits: waits.slice(0, MOST_WAITS) }),
  };
}
