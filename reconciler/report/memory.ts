/** The memory of a group between ticks, as a hint only: a pure function of the earlier memory and of the outcome. */
import { dedupKeyOf } from "../model/decision.ts";
import { describeOutcome } from "./describe.ts";
import { holdsOf, isLeftOut, type Outcome } from "../model/outcome.ts";
import { isZoneRecorded, type Zone } from "../model/zone.ts";

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
