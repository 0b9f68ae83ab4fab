/**
 * The next record of a gate: a pure function of its last one, of the rollout and of new answers.
 *
 *   the rollout wants to begin a zone -> stage: Waiting --all checks have passed--> Passed, the zone may begin
 *                                                       --one check has failed--> Failed --retry annotation--> Waiting
 */
import { earliest } from "../../infra/timestamp.ts";
import { addVerdict, dueAt, hasFailed, hasPassed, judgeAnswer, NO_STREAK, type CheckAnswer, type CheckVerdict } from "../checks/check.ts";
import type { Gate, GateCheck } from "./gate.ts";
import type { CheckResult, GateRecord, Stage } from "./record.ts";
import { currentRecord, needOf, needsLastStage, settledZone, type RolloutView } from "./rollout.ts";

/** Answers by the name of their check. */
export type Answers = ReadonlyMap<string, CheckAnswer>;

export interface Advance {
  readonly record: GateRecord;
  /** The stage whose checks are asked. */
  readonly open: Stage | undefined;
  /** The checks to ask now. */
  readonly due: readonly GateCheck[];
  /** When the next check is due; undefined without one. */
  readonly nextAt: number | undefined;
}

/** The same call without answers says which checks are due; with their answers it says what to write. */
export function advanceGate(gate: Gate, view: RolloutView, answers: Answers): Advance {
  const begun = beginWanted(gate, view, retry(gate, forgetOldSpec(gate, currentRecord(gate, view))));
  const opened = openStage(begun, view);
  const stage = opened && judgeStage(opened, gate, answers);
  const record = stage ? close(putStage(begun, stage), stage, view) : begun;
  const waiting =
    stage?.state === "Waiting" ? gate.checks.map((check) => ({ check, at: dueAt(check, stage.since, streakOf(check, stage)) })) : [];
  return {
    record,
    open: stage,
    due: waiting.filter(({ at }) => at <= view.now).map(({ check }) => check),
    nextAt: earliest(waiting.map(({ at }) => at)),
  };
}

/** Results of checks that have been edited since count no longer; what has passed or failed stays so. */
export function forgetOldSpec({ generation, observedGeneration }: Gate, record: GateRecord): GateRecord {
  if (generation === observedGeneration) return record;
  return { ...record, stages: record.stages.map((stage) => (stage.state === "Waiting" ? { ...stage, checks: [] } : stage)) };
}

/** The annotation names the rollout, and may have a suffix of its own: each value asks once more. */
function retry({ retry: wish }: Gate, record: GateRecord): GateRecord {
  const isMeant = wish === record.identity || wish?.startsWith(`${record.identity}/`) === true;
  if (!isMeant || wish === record.retried) return record;
  const stages = record.stages.filter(({ state }) => state !== "Failed");
  return stages.length === record.stages.length ? record : { ...record, retried: wish, stages };
}

/** Opens the stage that the wanted step needs, or records that it needs none. */
function beginWanted(gate: Gate, view: RolloutView, record: GateRecord): GateRecord {
  const { wanted } = view;
  if (wanted.kind === "other") return record;
  if (wanted.kind === "settled") {
    if (record.settledAt !== undefined) return record;
    return needsLastStage(gate, record) ? addStage(record, { point: "AfterLastZone", zone: "" }, view) : settle(record, view);
  }
  const need = needOf(gate, record, wanted.zone);
  const { name } = wanted.zone;
  if (need === "Nothing" || need === "Record") return markBegun(record, name);
  const opened = addStage(record, { point: need, zone: name }, view);
  // Where a gate only observes, the zone begins now.
  return gate.mode === "Observe" ? markBegun(opened, name) : opened;
}

function addStage(record: GateRecord, { point, zone }: Pick<Stage, "point" | "zone">, { now }: RolloutView): GateRecord {
  if (record.stages.some((stage) => stage.point === point && stage.zone === zone)) return record;
  return { ...record, stages: [...record.stages, { point, zone, since: now, state: "Waiting", checks: [] }] };
}

/** The stage that the wanted step waits for, otherwise the last one that waits: its checks go on while another zone is in the way. */
function openStage({ stages }: GateRecord, { wanted }: RolloutView): Stage | undefined {
  const waiting = stages.filter(({ state }) => state === "Waiting");
  const next = wanted.kind === "zone" ? wanted.zone : undefined;
  return waiting.find(({ zone }) => zone === next?.name) ?? waiting.at(-1);
}

const streakOf = ({ name }: GateCheck, { checks }: Stage) => checks.find((result) => result.name === name)?.streak ?? NO_STREAK;

function judgeStage(stage: Stage, gate: Gate, answers: Answers): Stage {
  const checks = gate.checks.flatMap((check) => addAnswer(check, stage, { gate, answer: answers.get(check.name) }));
  const next = { ...stage, checks };
  if (gate.checks.some((check) => hasFailed(check, streakOf(check, next)))) return { ...next, state: "Failed" };
  const hasAll = gate.checks.length > 0 && gate.checks.every((check) => hasPassed(check, streakOf(check, next)));
  return hasAll ? { ...next, state: "Passed" } : next;
}

/** The results of one check, none before the first answer. */
function addAnswer(
  check: GateCheck,
  stage: Stage,
  { gate, answer }: { readonly gate: Gate; readonly answer: CheckAnswer | undefined },
): CheckResult[] {
  const before = stage.checks.find(({ name }) => name === check.name);
  if (!answer) return before ? [before] : [];
  const verdict = judgeAnswer(check, answer);
  const counted: CheckVerdict = verdict === "Error" && gate.onError === "Proceed" ? "Success" : verdict;
  return [
    {
      name: check.name,
      lastVerdict: verdict,
      sample: answer.kind === "Vector" ? answer.sample : undefined,
      message: verdict === "Error" ? describeError(answer) : undefined,
      streak: addVerdict(before?.streak ?? NO_STREAK, counted, { check, at: answer.at }),
    },
  ];
}

function describeError(answer: CheckAnswer): string {
  return answer.kind === "Error" ? `${answer.code}: ${answer.message}` : `no data, but with warnings: ${answer.warnings.join("; ")}`;
}

function putStage(record: GateRecord, next: Stage): GateRecord {
  return { ...record, stages: record.stages.map((stage) => (stage.point === next.point && stage.zone === next.zone ? next : stage)) };
}

/** What follows from a stage that has passed. */
function close(record: GateRecord, stage: Stage, view: RolloutView): GateRecord {
  if (stage.state !== "Passed") return record;
  return stage.point === "AfterLastZone" ? settle(record, view) : markBegun(record, stage.zone);
}

function markBegun(record: GateRecord, name: string): GateRecord {
  return { ...record, zones: record.zones.map((zone) => (zone.name === name ? { ...zone, began: "Now" } : zone)) };
}

function settle(record: GateRecord, { now, zones }: RolloutView): GateRecord {
  return { ...record, settledAt: now, zones: zones.map(settledZone) };
}
