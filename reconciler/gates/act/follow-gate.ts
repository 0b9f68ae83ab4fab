/**
 * Follows one gate through one tick: the checks that are due are asked, and what follows is written to its status, with
 * the version that was read. Until it is written it does not count, so a process may die at any point.
 */
import type { Actor } from "../../../infra/kubernetes/actor.ts";
import { rolloutGates } from "../../../infra/kubernetes/resources.ts";
import { logUnwritten, writeStatus } from "../../../infra/kubernetes/write-status.ts";
import type { Log } from "../../../infra/log.ts";
import { judgeAnswer, type CheckVerdict } from "../../checks/check.ts";
import type { Round } from "../../checks/act/ask-prometheus.ts";
import { advanceGate, type Advance, type Answers } from "../advance.ts";
import type { Gate } from "../gate.ts";
import { formatRecord, type GateRecord } from "../record.ts";
import { type Condition, stampCondition } from "../../model/condition.ts";
import {
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

export interface GateFollower extends Actor {
  readonly round: Round;
  readonly log: Log;
  readonly onChange: (gate: Gate, changes: readonly GateChange[]) => void;
  readonly onVerdict: (verdict: CheckVerdict) => void;
  /** Reads expressions; called only if the spec has changed, as the grammar is large. */
  readonly readExpressions: (gate: Gate) => Promise<ExpressionFindings>;
  readonly now: () => number;
}

export interface Followed {
  /** True if the rollout may go on at once: something else than results was written. */
  readonly progressed: boolean;
  /** When the next check is due. */
  readonly nextAt: number | undefined;
}

const NO_ANSWERS: Answers = new Map();

/** `view` is undefined for a gate whose group has no zones. Never rejects. */
export async function followGate(gate: Gate, view: RolloutView | undefined, follower: GateFollower): Promise<Followed> {
  try {
    return await follow(gate, view, follower);
  } catch (error) {
    const { namespace, name } = gate.ref;
    logUnwritten(follower.log, "the status of the gate could not be written: its checks do not count", {
      namespace,
      gate: name,
      error,
    });
    return { progressed: false, nextAt: undefined };
  }
}

async function follow(gate: Gate, view: RolloutView | undefined, follower: GateFollower): Promise<Followed> {
  const answers = view ? await askDue(gate, advanceGate(gate, view, NO_ANSWERS), follower) : NO_ANSWERS;
  const next = view && advanceGate(gate, view, answers);
  const record = next?.record ?? (gate.record && forgetOldSpec(gate, gate.record));
  const findings = knownFindings(gate) ?? (await follower.readExpressions(gate));
  const stamp = { earlier: gate.conditions, generation: gate.generation, now: follower.now() };
  const valid = stampCondition(describeValid(gate, view !== undefined, findings), stamp);
  const conditions = [valid, stampCondition(describeOpen(gate, record), stamp)];
  const nextAt = next?.nextAt;
  const object = { ...gate.ref, resourceVersion: gate.resourceVersion };
  const before = statusOf(gate.observedGeneration, gate.record, gate.conditions);
  const change = {
    object,
    before,
    after: statusOf(gate.generation, record, conditions),
    isSame: isSameReport,
    by: "patch",
  } as const;
  if (!(await writeStatus(rolloutGates, change, follower))) return { progressed: false, nextAt };
  follower.onChange(gate, [...complaintOf(gate, valid), ...(record ? changesOf(gate, gate.record, record) : [])]);
  return { progressed: outline(record) !== outline(gate.record), nextAt };
}

async function askDue(gate: Gate, { due }: Advance, { round, onVerdict }: GateFollower): Promise<Answers> {
  const { namespace } = gate.ref;
  const answers = await Promise.all(
    due.map(async (check) => {
      const answer = await round.ask({ namespace, ...check });
      if (answer) onVerdict(judgeAnswer(check, answer));
      return [check.name, answer] as const;
    }),
  );
  return new Map(answers.flatMap(([name, answer]) => (answer ? [[name, answer] as const] : [])));
}

/** The parts of a record that let the rollout go on, without the results of checks. */
function outline(record: GateRecord | undefined): string {
  const stages = record?.stages.map(({ point, zone, state }) => [point, zone, state]);
  return JSON.stringify([record?.identity, record?.settledAt, record?.zones, stages]);
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
