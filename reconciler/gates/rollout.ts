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
  const isCurrent = record?.identity === view.identity && !isOver;
  const current = isCurrent ? continueRecord(gate, record, view) : startRecord(gate, view);
  return closeOldPasses(gate, noteUpdated(current, view), view);
}

function continueRecord(gate: Gate, record: GateRecord, { zones, wanted }: GroupView): GateRecord {
  const kept = forgetOldSpec(gate, record);
  return wanted.kind === "zone" ? askAgain(kept, zones, wanted.zone) : kept;
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
 * zone that has begun continues.
 */
export function forgetOldSpec({ generation, observedGeneration, when }: Gate, record: GateRecord): GateRecord {
  if (generation === observedGeneration) return record;
  const stages = record.stages.filter(({ point }) => when.includes(point));
  return { ...record, stages: stages.map((stage) => (stage.state === "Failed" ? stage : { ...stage, checks: [] })) };
}

/**
 * A zone that got the new template without asking, as all of its pods were broken, has begun as well: the next zone is
 * not the first. So the gate is asked again for the zones that it has let begin, or is about to.
 */
function noteUpdated(record: GateRecord, { zones }: GroupView): GateRecord {
  const hasUpdated = ({ name, settledRevision, began }: ZoneRecord): boolean => {
    const zone = zones.find((one) => one.name === name);
    if (began !== undefined || zone === undefined) return false;
    return zone.status.updateRevision !== settledRevision && isUpdated(zone);
  };
  if (record.settledAt !== undefined || !record.zones.some(hasUpdated)) return record;
  const noted = record.zones.map((one) => (hasUpdated(one) ? withBegan(one, "Earlier") : one));
  return askAgain({ ...record, zones: noted }, zones);
}

/**
 * The record once the rollout goes on with the zone `next`; without it, nobody knows which zone is next. The other zones
 * that are not updated yet must ask the gate again:
 *
 *   a zone that                             becomes
 *   has not begun                           the same; its stage is removed unless its checks have failed
 *   was let begin, and replaced no pod      not begun; its stage is removed
 *   was let begin, and replaced pods        begun earlier; its stage is removed. It is the first zone of this rollout: a zone
 *                                           that an earlier rollout began has not begun in this one, and must ask, too
 */
function askAgain(record: GateRecord, zones: readonly Zone[], next?: Zone): GateRecord {
  const others = new Map(zones.filter(({ uid }) => uid !== next?.uid).map((zone) => [zone.name, zone]));
  const isDone = ({ name }: ZoneRecord): boolean => {
    const zone = others.get(name);
    return zone !== undefined && isUpdated(zone);
  };
  const hasReplaced = ({ name, settledRevision }: ZoneRecord): boolean => {
    const zone = others.get(name);
    return zone !== undefined && !isUntouched(zone, settledRevision);
  };
  const left = record.zones.filter((one) => one.began === "Now" && others.has(one.name) && !isDone(one));
  const hasFirst = left.some(hasReplaced);
  const changed = (one: ZoneRecord): ZoneRecord => {
    if (left.includes(one)) return withBegan(one, hasReplaced(one) ? "Earlier" : undefined);
    const isEarlier = one.began === "Earlier" && !isDone(one);
    return hasFirst && isEarlier ? withBegan(one, undefined) : one;
  };
  const keepsStage = ({ zone, state }: Stage): boolean => {
    const own = record.zones.find(({ name }) => name === zone);
    if (own && left.includes(own)) return false;
    return state === "Failed" || zone === next?.name || own?.began === "Now";
  };
  return { ...record, zones: record.zones.map(changed), stages: record.stages.filter(keepsStage) };
}

function startRecord(gate: Gate, view: GroupView): GateRecord {
  const isSettled = view.wanted.kind === "settled";
  return {
    identity: view.identity,
    startedAt: view.now,
    settledAt: isSettled ? view.now : undefined,
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
type Need = "Nothing" | "Record" | Exclude<Point, "AfterLastZone">;

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
