/** The log lines of an outcome and of a tick: pure functions of the outcome and of the group's memory. */
import type { LogFields } from "../../infra/log.ts";
import { dedupKeyOf, factsOf } from "../model/decision.ts";
import { describeOutcome, type LogLine } from "./describe.ts";
import type { GroupMemory } from "./memory.ts";
import { isFailure, type Outcome, type TickResult } from "../model/outcome.ts";

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
