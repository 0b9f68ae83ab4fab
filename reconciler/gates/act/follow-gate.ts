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
import { sampleValues } from "../placeholder-values.ts";
import { formatRecord, type GateRecord, outlineOf, readRecord } from "../record.ts";
import { type Condition, stampCondition, type UnstampedCondition } from "../../../infra/kubernetes/condition.ts";
import {
  bypassesSeen,
  changesOf,
  complaintOf,
  describeOpen,
  describeValid,
  type GateChange,
  isSameReport,
  unanswered,
  validByAnswers,
} from "../report.ts";
import { forgetOldSpec, type RolloutView } from "../rollout.ts";

/** The context in which gates are followed. */
interface GateContext extends Omit<Context, "stop"> {
  readonly round: Round;
  readonly log: Log;
  /** Reads the rollout again if `view` is old by now, otherwise resolves with it; undefined if its zones are gone. */
  readonly renew: (view: RolloutView) => Promise<RolloutView | undefined>;
  readonly onChange: (gate: Gate, changes: readonly GateChange[]) => void;
  /** The generations of the gates whose expressions this process has tried, by UID. */
  readonly tried: Map<string, number>;
}

export interface Followed {
  /** True if the rollout may continue at once: something other than results was written. */
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
  const { next, view: latest } = view ? await ask(gate, view, context) : {};
  const record = next?.record ?? (gate.record && forgetOldSpec(gate, gate.record));
  const stamp = { earlier: gate.conditions, generation: gate.generation, now: context.clock.now() };
  const found = describeValid(gate, view !== undefined, record?.stages.at(-1)) ?? (await tryExpressions(gate, context));
  const valid = stampCondition(found, stamp);
  const judged = { ...gate, observedGeneration: gate.generation, conditions: [valid] };
  const conditions = [valid, stampCondition(describeOpen(judged, record), stamp)];
  const nextAt = next?.nextAt;
  const stored = await store(gate, statusOf(gate.generation, record, conditions), context);
  if (!stored) return { progressed: false, nextAt };
  // Fields that the definition does not know are not stored, and would look new in each tick.
  const { record: kept } = readRecord(stored.status);
  context.onChange(gate, [...complaintOf(gate, valid), ...changesBetween(judged, kept, latest)]);
  return { progressed: outlineOf(kept) !== outlineOf(gate.record), nextAt };
}

interface Decided {
  readonly next?: Advance;
  readonly view: RolloutView | undefined;
}

/**
 * Asks the checks that are due, and decides by their answers. They may come late, and the step may have waited for its
 * turn: then zones that are read after the answers decide whether the rollout continues.
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

function changesBetween(gate: Gate, after: GateRecord | undefined, view: RolloutView | undefined): GateChange[] {
  if (!after) return [];
  return [...(view ? bypassesSeen(gate.record, after, view) : []), ...changesOf(gate, gate.record, after)];
}

/** Undefined if the gate has this status already. */
async function store(gate: Gate, after: ReturnType<typeof statusOf>, context: GateContext) {
  const { ref, resourceVersion, observedGeneration, record, conditions } = gate;
  const before = statusOf(observedGeneration, record, conditions);
  const change = { kind: ref.kind, object: { ...ref, resourceVersion }, before, after, isSame: isSameReport };
  return await writeStatus(rolloutGates, change, context);
}

/**
 * Asks each expression once, with sample values for its placeholders, before the rollout needs them: a mistake shows when
 * the gate is written, not when a zone waits for it. Until Prometheus has answered, once in each process.
 */
async function tryExpressions(gate: Gate, context: GateContext): Promise<UnstampedCondition> {
  const { namespace, uid } = gate.ref;
  const earlier = unanswered(gate);
  if (earlier && context.tried.get(uid) === gate.generation) return earlier;
  const isTroubled = earlier !== undefined;
  const scope = { namespace, values: sampleValues(gate), dueAt: context.clock.now(), isTroubled };
  const tries = gate.checks.flatMap(({ name, query, baseline }) => [
    { name, which: baseline ? "the query: " : "", query },
    ...(baseline ? [{ name, which: "the baseline: ", query: { ...query, expr: baseline.expr } }] : []),
  ]);
  const asked = await Promise.all(
    tries.map(async ({ query, ...one }) => ({ ...one, answer: await context.round.ask({ ...scope, query }) })),
  );
  // What had no turn was not asked: the next tick tries again.
  if (asked.every(({ answer }) => answer !== undefined)) context.tried.set(uid, gate.generation);
  return validByAnswers(asked);
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
