/**
 * Follows one gate through one tick: asks the checks that are due, and writes the result to the gate's status, with
 * the version that was read. Only a stored result counts, so a process may die at any point.
 */
import type { Context } from "../../../infra/kubernetes/context.ts";
import { rolloutGates } from "../../../infra/kubernetes/custom-resources.ts";
import { logUnwritten, writeStatus } from "../../../infra/kubernetes/write-status.ts";
import type { Log } from "../../../infra/log.ts";
import { askChecks, type Round } from "../../checks/act/ask-prometheus.ts";
import type { Answers } from "../../checks/result.ts";
import { advanceGate, type Advance, isAt } from "../advance.ts";
import type { Gate } from "../gate.ts";
import { findImpossible, sampleValues } from "../placeholder-values.ts";
import { formatRecord, type GateRecord, outlineOf, readRecord } from "../record.ts";
import { type Condition, stampCondition } from "../../../infra/kubernetes/condition.ts";
import {
  bypassesSeen,
  changesOf,
  complaintOf,
  describeOpen,
  describeValid,
  type ExpressionFindings,
  findInAnswers,
  findInResults,
  knownFindings,
  NO_FINDINGS,
  type GateChange,
  isSameReport,
} from "../report.ts";
import { forgetOldSpec, type RolloutView } from "../rollout.ts";

/** The context in which gates are followed. */
interface GateContext extends Omit<Context, "stop"> {
  readonly round: Round;
  readonly log: Log;
  /** Reads the rollout again if `view` is old by now, otherwise resolves with it; undefined if its zones are gone. */
  readonly renew: (view: RolloutView) => Promise<RolloutView | undefined>;
  readonly onChange: (gate: Gate, changes: readonly GateChange[]) => void;
  /** What came of the expressions that this process has tried, by the UID of the gate. */
  readonly tried: Map<string, Tried>;
}

export interface Tried {
  readonly generation: number;
  readonly findings: ExpressionFindings;
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
  const [asked, found] = await Promise.all([
    view && ask(gate, view, context),
    findInExpressions(gate, view !== undefined, context),
  ]);
  const { next, view: latest } = asked ?? {};
  const record = next?.record ?? (gate.record && forgetOldSpec(gate, gate.record));
  const findings = findInResults(gate, record?.stages.at(-1), found);
  const stamp = { earlier: gate.conditions, generation: gate.generation, now: context.clock.now() };
  const valid = stampCondition(describeValid(gate, view !== undefined, findings), stamp);
  const conditions = [valid, stampCondition(describeOpen(gate, record), stamp)];
  const nextAt = next?.nextAt;
  const stored = await store(gate, statusOf(gate.generation, record, conditions), context);
  if (!stored) return { progressed: false, nextAt };
  // Fields that the definition does not know are not stored, and would look new in each tick.
  const { record: kept } = readRecord(stored.status);
  context.onChange(gate, [...complaintOf(gate, valid), ...changesBetween(gate, kept, latest)]);
  return { progressed: outlineOf(kept) !== outlineOf(gate.record), nextAt };
}

interface Decided {
  readonly next?: Advance;
  readonly view: RolloutView | undefined;
}

/**
 * Asks the checks that are due, and decides by their answers. They may come late, and the step may have waited for its
 * turn: then zones that are read after the answers decide what lets the rollout go on.
 */
async function ask(gate: Gate, view: RolloutView, context: GateContext): Promise<Decided> {
  const asked = advanceGate(gate, view, NO_ANSWERS);
  const { due, values, record } = asked;
  const scope = { namespace: gate.ref.namespace, values, startedAt: record.startedAt };
  const answers = await askChecks(due, scope, context.round);
  const next = advanceGate(gate, view, answers);
  if (outlineOf(next.record) === outlineOf(gate.record)) return { next, view };
  const latest = await context.renew(view);
  if (latest === view || !latest) return { ...(latest && { next }), view: latest };
  const renewed = advanceGate(gate, latest, NO_ANSWERS);
  const isSame = latest.identity === view.identity && asked.stage && renewed.stage && isAt(asked.stage, renewed.stage);
  return { next: isSame ? advanceGate(gate, latest, answers) : renewed, view: latest };
}

/** Undefined if the gate has this status already. */
async function store(gate: Gate, after: ReturnType<typeof statusOf>, context: GateContext) {
  const { ref, resourceVersion, observedGeneration, record, conditions } = gate;
  const before = statusOf(observedGeneration, record, conditions);
  const change = { object: { ...ref, resourceVersion }, before, after, isSame: isSameReport, by: "patch" } as const;
  return await writeStatus(rolloutGates, change, context);
}

function changesBetween(gate: Gate, record: GateRecord | undefined, view: RolloutView | undefined): GateChange[] {
  if (!record) return [];
  return [...(view ? bypassesSeen(gate.record, record, view) : []), ...changesOf(gate, gate.record, record)];
}

/**
 * What the status keeps of the expressions. After a change, and once in each process until Prometheus has answered, they
 * are tried before the rollout needs them: a mistake shows when the gate is written, not when a zone waits for it.
 */
async function findInExpressions(gate: Gate, hasZones: boolean, context: GateContext): Promise<ExpressionFindings> {
  const known = knownFindings(gate);
  if (known?.errors.length !== 0) {
    const errors = findImpossible(gate);
    if (errors.length > 0) return { errors, open: [], isFinal: true };
  }
  if (!hasZones || known?.open.length === 0) return known ?? NO_FINDINGS;
  const tried = context.tried.get(gate.ref.uid);
  if (tried?.generation === gate.generation) return tried.findings;
  return await tryExpressions(gate, known !== undefined, context);
}

/** Asks each expression once, with sample values for its placeholders. */
async function tryExpressions(gate: Gate, isTroubled: boolean, context: GateContext): Promise<ExpressionFindings> {
  const { namespace, uid } = gate.ref;
  const scope = { namespace, values: sampleValues(gate), dueAt: context.clock.now(), isTroubled };
  const tries = gate.checks.flatMap(({ name, query, baseline }) => [
    { name, which: baseline ? "the query: " : "", query },
    ...(baseline ? [{ name, which: "the baseline: ", query: { ...query, expr: baseline.expr } }] : []),
  ]);
  const asked = await Promise.all(
    tries.map(async ({ query, ...one }) => ({ ...one, answer: await context.round.ask({ ...scope, query }) })),
  );
  const findings = findInAnswers(asked);
  // What had no turn was not asked: the next tick tries again.
  if (asked.every(({ answer }) => answer !== undefined))
    context.tried.set(uid, { generation: gate.generation, findings });
  return findings;
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
