/**
 * The facts that a gate knows about the current rollout, and the zones for which it must be asked.
 *
 *   settled --other revisions: a new identity--> rollout --zone begins--> began: Now --…--> all updated --AfterLastZone passed--> settled
 *                                                   |
 *                                                   +--other revisions again, before it was settled: began: Earlier--> rollout
 *
 * Gates never block a rollback or a fix. A zone may always return to the revision that it had when the group was last
 * settled. And a zone that an unfinished rollout has begun may always get a new revision, if it is the first zone of
 * the new rollout.
 */
import { createHash } from "node:crypto";
import { isInFuture } from "../checks/check.ts";
import { dropFuture } from "../checks/result.ts";
import type { Zone } from "../model/zone.ts";
import { takesServing } from "../rollout/decide-rollout.ts";
import type { RolloutDecision } from "../rollout/decide-zone.ts";
import type { Gate } from "./gate.ts";
import { closeOldPasses, isUntouched } from "./pass.ts";
import { type GateRecord, type Point, type Stage, withBegan, type ZoneRecord } from "./record.ts";

/** The next step of the rollout if there were no gates. */
export type Wanted =
  | { readonly kind: "zone"; readonly zone: Zone }
  | { readonly kind: "settled" }
  | { readonly kind: "other" };

/** The step by the decision without gates: the zone whose serving pods it would take, or a settled group. */
export function wantedBy(ungated: RolloutDecision | undefined): Wanted {
  if (!ungated) return { kind: "settled" };
  return takesServing(ungated) ? { kind: "zone", zone: ungated.zone } : { kind: "other" };
}

/** Names a rollout by 16 hexadecimal digits: another template of any zone makes another rollout. */
export function identityOf(zones: readonly Zone[]): string {
  const revisions = zones.map(({ name, uid, status }) => `${name}/${uid}/${status.updateRevision}`).toSorted();
  return createHash("sha256").update(revisions.join("\n")).digest("hex").slice(0, 16);
}

export interface RolloutView {
  readonly identity: string;
  readonly zones: readonly Zone[];
  readonly wanted: Wanted;
  /** A gate of the group waits for the checks of the wanted zone: the zone does not begin. */
  readonly isHeld: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export type GroupView = Omit<RolloutView, "isHeld">;

/**
 * The record of the rollout in the view: the gate's own if it is of this rollout and still open, otherwise a new one.
 * Old results let no zone begin.
 */
export function currentRecord(gate: Gate, view: GroupView): GateRecord {
  const record = gate.record && inPast(gate.record, view.now);
  const isOver = record?.settledAt !== undefined && view.wanted.kind === "zone";
  const current =
    record?.identity === view.identity && !isOver
      ? takeBack(forgetOldSpec(gate, record), view)
      : startRecord(gate, view);
  return closeOldPasses(gate, noteUpdated(current, view), view);
}

/** The record with the present in place of times in the future, and without results from then. */
function inPast(record: GateRecord, now: number): GateRecord {
  const past = (at: number): number => (isInFuture(at, now) ? now : at);
  const stages = record.stages.map((stage) => ({
    ...stage,
    since: past(stage.since),
    checks: stage.state === "Failed" ? stage.checks : dropFuture(stage.checks, now),
  }));
  return { ...record, startedAt: past(record.startedAt), stages };
}

/**
 * Results of checks that were edited since then no longer count, and a point that the gate has no more is not asked. A
 * zone that has begun goes on.
 */
export function forgetOldSpec({ generation, observedGeneration, when }: Gate, record: GateRecord): GateRecord {
  if (generation === observedGeneration) return record;
  const stages = record.stages.filter(({ point }) => when.includes(point));
  return { ...record, stages: stages.map((stage) => (stage.state === "Failed" ? stage : { ...stage, checks: [] })) };
}

/**
 * A zone that got the new template otherwise, as all its pods were broken, has begun as well: the next zone is not the
 * first. A zone that was let begin before that must be asked for again.
 */
function noteUpdated(record: GateRecord, { zones }: GroupView): GateRecord {
  const byName = new Map(zones.map((zone) => [zone.name, zone]));
  const isNew = ({ name, settledRevision, began }: ZoneRecord): boolean => {
    const zone = byName.get(name);
    return (
      began === undefined && zone !== undefined && zone.status.updateRevision !== settledRevision && isUpdated(zone)
    );
  };
  if (record.settledAt !== undefined || !record.zones.some(isNew)) return record;
  const noted = record.zones.map((zone) => (isNew(zone) ? withBegan(zone, "Earlier") : zone));
  return takeBackZones(dropOpenStages({ ...record, zones: noted }), zones);
}

/**
 * If another zone than before is wanted, the gate must later be asked again for a zone that was let begin and is not
 * updated, and for a zone that waits or has passed.
 */
function takeBack(record: GateRecord, { zones, wanted }: GroupView): GateRecord {
  if (wanted.kind !== "zone") return record;
  const { name: next, uid } = wanted.zone;
  return takeBackZones(
    dropOpenStages(record, next),
    zones.filter((zone) => zone.uid !== uid),
  );
}

/** Leaves out the stages of zones that have not begun, except those of `next` and those that have failed. */
function dropOpenStages(record: GateRecord, next?: string): GateRecord {
  const begun = new Set(record.zones.flatMap(({ name, began }) => (began === "Now" ? [name] : [])));
  const isKept = ({ state, zone }: Stage): boolean => state === "Failed" || zone === next || begun.has(zone);
  return record.stages.every(isKept) ? record : { ...record, stages: record.stages.filter(isKept) };
}

/**
 * The zones in `zones` that were let begin and are not updated count as begun earlier, or as not begun if all their
 * pods are unchanged. If one of them has begun, no other zone is the first of this rollout any more: the gate must
 * then be asked for zones that an earlier rollout has begun, too.
 */
function takeBackZones(record: GateRecord, zones: readonly Zone[]): GateRecord {
  const byName = new Map(zones.map((zone) => [zone.name, zone]));
  const isDone = ({ name }: ZoneRecord): boolean => {
    const zone = byName.get(name);
    return zone !== undefined && isUpdated(zone);
  };
  const hasBegun = ({ name, settledRevision }: ZoneRecord): boolean => {
    const zone = byName.get(name);
    return zone !== undefined && !isUntouched(zone, settledRevision);
  };
  const isTaken = (one: ZoneRecord): boolean => one.began === "Now" && byName.has(one.name) && !isDone(one);
  if (!record.zones.some(isTaken)) return record;
  const isFirstOver = record.zones.some((one) => isTaken(one) && hasBegun(one));
  const next = (one: ZoneRecord): ZoneRecord => {
    if (isTaken(one)) return withBegan(one, hasBegun(one) ? "Earlier" : undefined);
    return isFirstOver && one.began === "Earlier" && !isDone(one) ? withBegan(one, undefined) : one;
  };
  return {
    ...record,
    zones: record.zones.map(next),
    stages: record.stages.filter(({ zone }) => !record.zones.some((one) => one.name === zone && isTaken(one))),
  };
}

function startRecord(gate: Gate, view: GroupView): GateRecord {
  const isSettled = view.wanted.kind === "settled";
  return {
    identity: view.identity,
    startedAt: view.now,
    settledAt: isSettled ? view.now : undefined,
    retried: undefined,
    zones: view.zones.map((zone) => (isSettled ? settledZone(zone) : beginZone(zone, gate, view))),
    stages: [],
    bypasses: gate.record?.bypasses ?? [],
  };
}

/** The record of a zone in a settled group: a rollback leads to this revision from now on. */
export const settledZone = ({ name, status }: Zone): ZoneRecord => ({ name, settledRevision: status.updateRevision });

function beginZone(zone: Zone, gate: Gate, view: GroupView): ZoneRecord {
  const before = gate.record?.zones.find(({ name }) => name === zone.name);
  return {
    name: zone.name,
    settledRevision: before?.settledRevision ?? unrecordedRevision(zone, gate),
    ...(hasBegunEarlier(zone, gate, view) && { began: "Earlier" as const }),
  };
}

/**
 * The revision that a zone without a record had when the group was last settled; "" if that is not known. A
 * StatefulSet that was deleted without its pods and recreated with another template reports that template as its
 * current revision, too: this is no rollback. A new gate has no record of the zones: there, a zone without a pod of
 * that revision counts as recreated, and any other zone may be in a rollback.
 */
function unrecordedRevision({ status }: Zone, { record }: Gate): string {
  const { currentRevision, updateRevision, updated, replicas } = status;
  const isElsewhere = record ? updated < replicas : updated === 0;
  return currentRevision === updateRevision && isElsewhere ? "" : currentRevision;
}

function hasBegunEarlier(zone: Zone, { record, when }: Gate, { wanted }: GroupView): boolean {
  // A new gate cannot know whether zones that are already updated belong to this rollout. It assumes so, and is asked
  // before the next zone.
  if (!record) return when.includes("BetweenZones") && !isSame(wanted, zone) && isUpdated(zone);
  const before = record.zones.find(({ name }) => name === zone.name);
  return record.settledAt === undefined && before?.began !== undefined && !isUntouched(zone, before.settledRevision);
}

const isSame = (wanted: Wanted, { uid }: Zone): boolean => wanted.kind === "zone" && wanted.zone.uid === uid;
const isUpdated = ({ replicas, status }: Zone): boolean => status.updated > 0 && status.updated >= replicas;

/**
 * The requirement of a zone before it may begin: nothing, a record, or passed checks at a point. Without a record the
 * zone could not be distinguished from later ones.
 */
export type Need = "Nothing" | "Record" | Exclude<Point, "AfterLastZone">;

/** By the record of the current rollout. */
export function needOf({ when }: Pick<Gate, "when">, { zones }: GateRecord, zone: Zone): Need {
  const own = zones.find(({ name }) => name === zone.name);
  if (own?.began === "Now") return "Nothing";
  if (own?.settledRevision === zone.status.updateRevision) return "Record";
  const others = zones.filter(({ name }) => name !== zone.name);
  const isFirst = others.every(({ began }) => began !== "Now");
  if (isFirst && own?.began === "Earlier") return "Record";
  const point = zones.some(({ began }) => began !== undefined) ? "BetweenZones" : "BeforeFirstZone";
  return when.includes(point) ? point : "Record";
}

/** True if the group may not count as settled before the checks after the last zone have passed. */
export function needsLastStage({ when }: Pick<Gate, "when">, { settledAt, zones }: GateRecord): boolean {
  return settledAt === undefined && when.includes("AfterLastZone") && zones.some(({ began }) => began !== undefined);
}
