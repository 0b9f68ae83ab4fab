/**
 * Follows one gate through one tick: asks the checks that are due, and writes the result to the gate's status, with
 * the version that was read. Only a stored result counts, so a process may die at any point.
 */
import type { Context } from "../../../infra/kubernetes/context.ts";
import { rolloutGates } from "../../../infra/kubernetes/custom-resources.ts";
import { logUnwritten, writeStatus } from "../../../infra/kubernetes/write-status.ts";
import type { Log } from "../../../infra/log.ts";
import { judgeAnswer, type CheckVerdict } from "../../checks/check.ts";
import { askChecks, type Round } from "../../checks/act/ask-prometheus.ts";
import type { Answers } from "../../checks/result.ts";
import { advanceGate, type Advance } from "../advance.ts";
import type { Gate } from "../gate.ts";
import { formatRecord, type GateRecord, outlineOf, readRecord } from "../record.ts";
import { type Condition, stampCondition } from "../../model/condition.ts";
import {
  bypassesSeen,
  changesOf,
  complaintOf,
  describeOpen,
  describeValid,
  knownFindings,
  type ExpressionFindings,
  type GateChange,
  isSameReport,
} from "../report.ts";
import { forgetOldSpec, type RolloutView } from "../rollout.ts";

/** The context in which gates are followed. */
export interface GateContext extends Omit<Context, "stop"> {
  readonly round: Round;
  readonly log: Log;
  /** The last status that this process has written, by the UID of the gate. */
  readonly sent: Map<string, SentStatus>;
  readonly onChange: (gate: Gate, changes: readonly GateChange[]) => void;
  readonly onVerdict: (verdict: CheckVerdict) => void;
  /** Reads expressions; called only if the spec has changed, as the grammar is large. */
  readonly readExpressions: (gate: Gate) => Promise<ExpressionFindings>;
}

/**
 * A status, and the version of the gate that it was stored in. A definition of an earlier version drops fields that it
 * does not know: without this record they would be sent again in each tick.
 */
export interface SentStatus {
  readonly resourceVersion: string;
  readonly status: ReturnType<typeof statusOf>;
}

export interface Followed {
  /** True if the rollout may go on at once: something other than results was written. */
  readonly progressed: boolean;
  /** When the next check is due. */
  readonly nextAt: number | undefined;
}

const NO_ANSWERS: Answers = new Map();

/** `view` is undefined for a gate whose group has no zones. Never rejects. */
export async function followGate(gate: Gate, view: RolloutView | undefined, context: GateContext): Promise<Followed> {
  try {
    return await follow(gate, view, context);
  } catch (error) {
    const { namespace, name } = gate.ref;
    logUnwritten(context.log, "the status of the gate could not be written: its checks do not count", {
      namespace,
      gate: name,
      error,
    });
    return { progressed: false, nextAt: undefined };
  }
}

async function follow(gate: Gate, view: RolloutView | undefined, context: GateContext): Promise<Followed> {
  const answers = view ? await askDue(gate, advanceGate(gate, view, NO_ANSWERS), context) : NO_ANSWERS;
  const next = view && advanceGate(gate, view, answers);
  const record = next?.record ?? (gate.record && forgetOldSpec(gate, gate.record));
  const findings = knownFindings(gate) ?? (await context.readExpressions(gate));
  const stamp = { earlier: gate.conditions, generation: gate.generation, now: context.clock.now() };
  const valid = stampCondition(describeValid(gate, view !== undefined, findings), stamp);
  const conditions = [valid, stampCondition(describeOpen(gate, record), stamp)];
  const nextAt = next?.nextAt;
  const stored = await store(gate, statusOf(gate.generation, record, conditions), context);
  if (!stored) return { progressed: false, nextAt };
  // Fields that the definition does not know are not stored, and would look new in each tick.
  const { record: kept } = readRecord(stored.status);
  context.onChange(gate, [...complaintOf(gate, valid), ...changesBetween(gate, kept, view)]);
  return { progressed: outlineOf(kept) !== outlineOf(gate.record), nextAt };
}

/** Undefined if the gate has this status already, or if the status was already sent for this version of the gate. */
async function store(gate: Gate, after: SentStatus["status"], context: GateContext) {
  const { ref, resourceVersion, observedGeneration, record, conditions } = gate;
  const sent = context.sent.get(ref.uid);
  if (sent?.resourceVersion === resourceVersion && isSameReport(sent.status, after)) return undefined;
  const before = statusOf(observedGeneration, record, conditions);
  const change = { object: { ...ref, resourceVersion }, before, after, isSame: isSameReport, by: "patch" } as const;
  const stored = await writeStatus(rolloutGates, change, context);
  if (stored) context.sent.set(ref.uid, { resourceVersion: stored.metadata.resourceVersion ?? "", status: after });
  return stored;
}

function changesBetween(gate: Gate, record: GateRecord | undefined, view: RolloutView | undefined): GateChange[] {
  if (!record) return [];
  return [...(view ? bypassesSeen(gate.record, record, view) : []), ...changesOf(gate, gate.record, record)];
}

async function askDue(gate: Gate, advance: Advance, { round, onVerdict }: GateContext): Promise<Answers> {
  const { due, values, record } = advance;
  const scope = { namespace: gate.ref.namespace, values, startedAt: record.startedAt };
  const answers = await askChecks(due, scope, round);
  for (const check of due) {
    const answer = answers.get(check.name);
    if (answer) onVerdict(judgeAnswer(check, answer));
  }
  return answers;
}

const statusOf = (
  observedGeneration: number | undefined,
  record: GateRecord | undefined,
  conditions: readonly Condition[],
) => ({
  observedGeneration,
  ...(record && formatRecord(record)),
  conditions,
});
