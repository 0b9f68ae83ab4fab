/**
 * The next record of a gate: a pure function of its last one, of the rollout and of new answers.
 *
 *   the rollout wants to begin a zone -> stage: Waiting --all checks have passed--> Passed, the zone may begin (pass.ts says how long)
 *                                                       --one check has failed--> Failed --retry annotation--> Waiting
 *                                                       --a bypass, also of a failed one--> Bypassed, the zone may begin
 */
import { earliest } from "../../infra/timestamp.ts";
import { hasFailed } from "../checks/check.ts";
import { type Answers, nextResults, type PlannedCheck, planChecks, streakOf } from "../checks/result.ts";
import type { Zone } from "../model/zone.ts";
import { type Gate, soakEnd } from "./gate.ts";
import { noteBypasses } from "./bypass.ts";
import { arePassed, isBypassed, isStageOpen } from "./pass.ts";
import type { PlaceholderValues } from "../checks/placeholders.ts";
import { gatePlaceholders } from "./placeholder-values.ts";
import type { GateRecord, Stage, ZoneRecord } from "./record.ts";
import { currentRecord, needOf, needsLastStage, settledZone, type RolloutView } from "./rollout.ts";

type StageKey = Pick<Stage, "point" | "zone">;

export interface Advance {
  readonly record: GateRecord;
  /** The stage of which the checks are asked. */
  readonly stage: StageKey | undefined;
  /** The checks to ask now. */
  readonly due: readonly PlannedCheck[];
  /** The values of the placeholders of these checks. */
  readonly values: PlaceholderValues;
  /** When the next check is due; undefined without one. */
  readonly nextAt: number | undefined;
}

/** The same call without answers says which checks are due; with their answers it says what to write. */
export function advanceGate(gate: Gate, view: RolloutView, answers: Answers): Advance {
  const begun = beginWanted(gate, view, note(view, retry(gate, currentRecord(gate, view))));
  const opened = findOpen(begun, view);
  const stage = opened && judgeStage(opened, gate, { answers, now: view.now, mayPass: isWanted(opened, begun, view) });
  const record = stage ? close(putStage(begun, stage), stage, view) : begun;
  const asked =
    stage && isStageOpen(stage, record, view.zones) ? planChecks(gate.checks, stage.checks, stage.since) : [];
  return {
    record,
    stage,
    due: asked.filter((check) => check.dueAt <= view.now),
    values: stage ? gatePlaceholders(gate, { stage, record, view }) : {},
    nextAt: earliest([...asked.map((check) => check.dueAt), ...(stage ? soakingUntil(gate, stage, view.now) : [])]),
  };
}

/** The end of the soak time, as long as it is waited for. */
function soakingUntil(gate: Gate, stage: Stage, now: number): number[] {
  const end = soakEnd(gate, stage);
  return stage.state === "Waiting" && end > now ? [end] : [];
}

/** The annotation names the rollout, and may have a suffix of its own: each value asks once more. */
function retry({ retry: wish }: Gate, record: GateRecord): GateRecord {
  const isMeant = wish === record.identity || wish?.startsWith(`${record.identity}/`) === true;
  if (!isMeant || wish === record.retried) return record;
  const stages = record.stages.filter(({ state }) => state !== "Failed");
  return stages.length === record.stages.length ? record : { ...record, retried: wish, stages };
}

/** Judges the bypasses that are new, and forgets those that are gone. */
const note = ({ zones, now }: RolloutView, record: GateRecord): GateRecord => ({
  ...record,
  bypasses: noteBypasses(record.bypasses, zones, now),
});

/** Opens the stage that the wanted step needs, or records that it needs none. */
function beginWanted(gate: Gate, view: RolloutView, record: GateRecord): GateRecord {
  const { wanted } = view;
  if (wanted.kind === "other") return record;
  if (wanted.kind === "settled") return settleWanted(gate, view, record);
  const { zone } = wanted;
  const need = needOf(gate, record, zone);
  if (need === "Nothing" || need === "Record") return markBegun(record, zone);
  const place = { point: need, zone: zone.name };
  if (isBypassed(record, zone.name, view)) return markBegun(bypass(record, place, view), zone);
  const opened = addStage(record, place, view);
  // No gate holds the zone, or this one only observes: it begins now.
  return gate.mode === "Observe" || !view.isHeld ? markBegun(opened, zone) : opened;
}

function settleWanted(gate: Gate, view: RolloutView, record: GateRecord): GateRecord {
  if (record.settledAt !== undefined) return record;
  if (!needsLastStage(gate, record)) return settle(record, view);
  const place = { point: "AfterLastZone", zone: "" } as const;
  return isBypassed(record, "", view) ? settle(bypass(record, place, view), view) : addStage(record, place, view);
}

/** Bypasses the stage, even if its checks have failed. */
function bypass(record: GateRecord, place: StageKey, view: RolloutView): GateRecord {
  const opened = addStage(record, place, view);
  return {
    ...opened,
    stages: opened.stages.map((stage) => (isAt(stage, place) ? { ...stage, state: "Bypassed" } : stage)),
  };
}

export const isAt = (stage: StageKey, { point, zone }: StageKey): boolean =>
  stage.point === point && stage.zone === zone;

/**
 * A stage never begins before its rollout, which another clock may have dated up to a minute ahead: read back, it would
 * be dropped as an older one, and its checks asked again in each tick.
 */
function addStage(record: GateRecord, { point, zone }: StageKey, { now }: RolloutView): GateRecord {
  if (record.stages.some((stage) => isAt(stage, { point, zone }))) return record;
  const since = Math.max(now, record.startedAt);
  return { ...record, stages: [...record.stages, { point, zone, since, state: "Waiting", checks: [] }] };
}

/**
 * The stage to ask: that of the wanted step, otherwise the last one; its checks continue while another zone is in the
 * way.
 */
function findOpen(record: GateRecord, { wanted, zones }: RolloutView): Stage | undefined {
  const open = record.stages.filter((stage) => isStageOpen(stage, record, zones));
  const next = wanted.kind === "zone" ? wanted.zone : undefined;
  return open.findLast(({ zone }) => zone === next?.name) ?? open.at(-1);
}

/**
 * Only the wanted stage may pass, or that of a zone that begins without asking. A pass while another zone is in the way
 * would be old when it is used.
 */
function isWanted({ point, zone }: Stage, { zones }: GateRecord, { wanted }: RolloutView): boolean {
  if (point === "AfterLastZone") return wanted.kind === "settled";
  return (
    (wanted.kind === "zone" && wanted.zone.name === zone) ||
    zones.some(({ name, began }) => name === zone && began === "Now")
  );
}

interface StageFacts {
  readonly answers: Answers;
  readonly now: number;
  readonly mayPass: boolean;
}

/**
 * A pass stays valid in this tick, whatever the answers: the zone may begin meanwhile. The next tick judges it by
 * them.
 */
function judgeStage(stage: Stage, gate: Gate, { answers, now, mayPass }: StageFacts): Stage {
  const { checks, onError } = gate;
  const next = { ...stage, checks: nextResults(checks, stage.checks, { answers, onError }) };
  if (stage.state === "Passed") return next;
  if (checks.some((check) => hasFailed(check, streakOf(check, next.checks)))) return { ...next, state: "Failed" };
  return mayPass && arePassed(gate, next, now) ? { ...next, state: "Passed" } : next;
}

function putStage(record: GateRecord, next: Stage): GateRecord {
  return {
    ...record,
    stages: record.stages.map((stage) => (isAt(stage, next) ? next : stage)),
  };
}

/** The last stage has passed: the rollout is over. */
function close(record: GateRecord, stage: Stage, view: RolloutView): GateRecord {
  return stage.state === "Passed" && stage.point === "AfterLastZone" ? settle(record, view) : record;
}

/** The zone begins now, if it has not already. */
function markBegun(record: GateRecord, { name, replicas, status }: Zone): GateRecord {
  const { current, updated, ready } = status;
  const counts = { current, updated, notReady: Math.max(replicas - ready, 0) };
  const mark = (one: ZoneRecord): ZoneRecord => (one.began === "Now" ? one : { ...one, began: "Now", counts });
  return { ...record, zones: record.zones.map((one) => (one.name === name ? mark(one) : one)) };
}

function settle(record: GateRecord, { now, zones }: RolloutView): GateRecord {
  return { ...record, settledAt: now, zones: zones.map(settledZone) };
}
