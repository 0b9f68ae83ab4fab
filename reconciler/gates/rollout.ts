/**
 * What a gate knows of the rollout that goes on, and which zones it must be asked for.
 *
 *   settled --other revisions: a new identity--> rollout --zone begins--> began: Now --…--> all updated --AfterLastZone passed--> settled
 *                                                   |
 *                                                   +--other revisions again, before it was settled: began: Earlier--> rollout
 *
 * Two ways are always open, so that a gate never stands between a broken zone and its cure: back to the revision that the zone had when the group was
 * last settled, and, first of a new rollout, on to a new revision of a zone that an unfinished rollout has begun.
 */
import type { Zone } from "../model/zone.ts";
import type { Gate } from "./gate.ts";
import type { GateRecord, ZoneRecord, Point } from "./record.ts";

/** What the rollout would do next if there were no gates. */
export type Wanted = { readonly kind: "zone"; readonly zone: Zone } | { readonly kind: "settled" } | { readonly kind: "other" };

export interface RolloutView {
  /** A hash of the update revisions of all zones. */
  readonly identity: string;
  readonly zones: readonly Zone[];
  readonly wanted: Wanted;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The record of the rollout in the view: the gate's own if it is of this rollout and still open, otherwise a new one. */
export function currentRecord(gate: Gate, view: RolloutView): GateRecord {
  const { record } = gate;
  const isOver = record?.settledAt !== undefined && view.wanted.kind === "zone";
  return noteUpdated(record?.identity === view.identity && !isOver ? takeBack(record, view) : startRecord(gate, view), view);
}

/**
 * A zone that got the new template otherwise, as all its pods were broken, has begun as well: what comes next is not the first zone. A zone that was let
 * begin before that must be asked for again.
 */
function noteUpdated(record: GateRecord, { zones }: RolloutView): GateRecord {
  const isNew = ({ name, settledRevision, began }: ZoneRecord): boolean =>
    began === undefined && zones.some((zone) => zone.name === name && zone.status.updateRevision !== settledRevision && isUpdated(zone));
  if (record.settledAt !== undefined || !record.zones.some(isNew)) return record;
  const noted = record.zones.map((zone) => (isNew(zone) ? { ...zone, began: "Earlier" as const } : zone));
  return takeBackZones({ ...record, zones: noted }, zones);
}

/**
 * Another zone than before is wanted: a zone that was let begin and is not updated must be asked for again after that one, and so must a zone that
 * waits.
 */
function takeBack(record: GateRecord, { zones, wanted }: RolloutView): GateRecord {
  if (wanted.kind !== "zone") return record;
  const { name: next, uid } = wanted.zone;
  const begun = new Set(record.zones.flatMap(({ name, began }) => (began === "Now" ? [name] : [])));
  const stages = record.stages.filter(({ state, zone }) => state !== "Waiting" || zone === next || begun.has(zone));
  return takeBackZones(
    stages.length === record.stages.length ? record : { ...record, stages },
    zones.filter((zone) => zone.uid !== uid),
  );
}

/** Of these zones, those that were let begin and are not updated count as begun earlier, or as not begun if all their pods are as they were. */
function takeBackZones(record: GateRecord, zones: readonly Zone[]): GateRecord {
  const unfinished = new Map(zones.flatMap((zone) => (isUpdated(zone) ? [] : [[zone.name, zone] as const])));
  const isTaken = ({ name, began }: ZoneRecord): boolean => began === "Now" && unfinished.has(name);
  if (!record.zones.some(isTaken)) return record;
  return {
    ...record,
    zones: record.zones.map((one) => {
      const zone = isTaken(one) ? unfinished.get(one.name) : undefined;
      return zone ? { ...one, began: isUntouched(zone, one.settledRevision) ? undefined : "Earlier" } : one;
    }),
    stages: record.stages.filter(({ zone }) => !record.zones.some((one) => one.name === zone && isTaken(one))),
  };
}

function startRecord(gate: Gate, view: RolloutView): GateRecord {
  const isSettled = view.wanted.kind === "settled";
  return {
    identity: view.identity,
    startedAt: view.now,
    settledAt: isSettled ? view.now : undefined,
    retried: undefined,
    zones: view.zones.map((zone) => (isSettled ? settledZone(zone) : beginZone(zone, gate, view))),
    stages: [],
  };
}

/** The zones of a settled group: a way back leads there from now on. */
export const settledZone = ({ name, status }: Zone): ZoneRecord => ({ name, settledRevision: status.updateRevision });

function beginZone(zone: Zone, gate: Gate, view: RolloutView): ZoneRecord {
  const before = gate.record?.zones.find(({ name }) => name === zone.name);
  return {
    name: zone.name,
    settledRevision: before?.settledRevision ?? zone.status.currentRevision,
    ...(hasBegunEarlier(zone, gate, view) && { began: "Earlier" as const }),
  };
}

function hasBegunEarlier(zone: Zone, { record, when }: Gate, { wanted }: RolloutView): boolean {
  // A new gate cannot know if zones that are updated already belong to this rollout. It takes them for zones that do, and so is asked before the next.
  if (!record) return when.includes("BetweenZones") && !isSame(wanted, zone) && isUpdated(zone);
  const before = record.zones.find(({ name }) => name === zone.name);
  return record.settledAt === undefined && before?.began !== undefined && !isUntouched(zone, before.settledRevision);
}

/** True if all pods of a zone that has a new template are still as they were when the group was last settled. */
function isUntouched({ replicas, status }: Zone, settledRevision: string): boolean {
  const { currentRevision, updateRevision, current } = status;
  return updateRevision !== settledRevision && currentRevision === settledRevision && current >= replicas;
}

const isSame = (wanted: Wanted, { uid }: Zone): boolean => wanted.kind === "zone" && wanted.zone.uid === uid;
const isUpdated = ({ replicas, status }: Zone): boolean => status.updated > 0 && status.updated >= replicas;

/**
 * What a zone needs before it may begin: nothing, to be recorded, or to pass the checks at a point. An unrecorded zone could not be distinguished from
 * later ones.
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
  return settledAt === undefined && when.includes("AfterLastZone") && zones.some(({ began }) => began === "Now");
}
