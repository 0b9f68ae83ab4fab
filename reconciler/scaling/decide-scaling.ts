/**
 * The scaling of a group (§2.0): one step for one zone, leaders and followers first, then mirroring zones, in the
 * order of names. After a zone that waits, the next one has its turn; once a zone has been scaled, only its write-back
 * is left.
 *
 *   gather -> decideScaling -> step -> its outcome is a fact of the next snapshot -> decideScaling -> ... -> a hold, or nothing is left
 */
import { firstOf, type Rule } from "../../infra/rules.ts";
import { type Hold, hold } from "../model/decision.ts";
import type { Zone } from "../model/zone.ts";
import { decideFollower } from "./leader.ts";
import { refusedGroup } from "../model/refused-group.ts";
import {
  planScale,
  type ReferenceReading,
  type ScalingSnapshot,
  type ScalingStep,
  type WriteBack,
  type ZoneFacts,
  zoneFactsOf,
  type Reference,
} from "./snapshot.ts";
import type { Mirror } from "../model/annotations.ts";
import { planPreparation, readDelay, shrinkTo, type Delay } from "./delayed.ts";

interface ScalingDecision {
  /** The next step: a hold if only waiting is left, undefined if nothing is left. */
  readonly next: ScalingStep | undefined;
  /** Why zones that have had their turn are not scaled, in the order of their turns. */
  readonly scalingHolds: readonly Hold[];
  /** The zone whose turn it is, if its reference is to be read first. */
  readonly unread?: Zone;
}

type ZoneRule = Rule<[zone: Zone, snapshot: ScalingSnapshot], ScalingStep | Unread>;

/** A zone that was refused is not tried again in the same tick. */
const notRefused: ZoneRule = (zone, snapshot) => zoneFactsOf(snapshot, zone).refused;

const decideZone: ZoneRule = firstOf<[Zone, ScalingSnapshot], ScalingStep | Unread>([
  notRefused,
  decideFollower,
  decideMirror,
]);

/** The next step in the group, by the first zone whose turn yields one. At most one zone is scaled. */
export function decideScaling(snapshot: ScalingSnapshot): ScalingDecision {
  const { zones, scaled } = snapshot;
  if (scaled) return { next: decideWriteBack(scaled.step.zone, snapshot), scalingHolds: scaled.scalingHolds };
  const scalingHolds: Hold[] = [];
  for (const zone of inTurn(zones)) {
    const opinion = decideZone(zone, snapshot);
    if (opinion?.action === "unread") return { next: undefined, scalingHolds, unread: zone };
    if (opinion?.action === "hold") scalingHolds.push(opinion);
    const next = opinion && opinion.action !== "hold" ? opinion : decideWriteBack(zone, snapshot);
    if (next) return { next, scalingHolds };
  }
  return { next: scalingHolds[0], scalingHolds };
}

/** A group with a zone that is being deleted, and one that nobody handles, is not scaled. */
function inTurn(zones: readonly Zone[]): readonly Zone[] {
  if (refusedGroup({ zones })) return [];
  if (zones.some((zone) => zone.terminating)) return [];
  return [
    ...zones.filter(({ scaling }) => scaling.leader !== undefined),
    ...zones.filter(({ scaling }) => scaling.mirror && scaling.leader === undefined),
  ];
}

// Mirroring (§2.4, §2.5): a zone takes over the replicas of another resource, and writes back the replicas that it has.
//
//   read the reference -> notify the pods that stay -> as wanted? write back
//     -> grow, or shrink without a delay: scale -> write back
//     -> shrink: prepare the pods that go -> too early or refused? hold, write back
//                                         -> read the reference again -> as before? scale -> write back

/** The reference is to be read before anything can be decided about the zone. */
interface Unread {
  readonly action: "unread";
  readonly zone: Zone;
}

/** A mirroring zone whose reference has been read. */
interface Turn {
  readonly zone: Zone;
  readonly mirror: Mirror;
  readonly facts: ZoneFacts;
  readonly delay: Delay | Hold | undefined;
  /** The replicas that the zone is to have: forced ones win. */
  readonly wanted: number;
  readonly snapshot: ScalingSnapshot;
}

type MirrorRule = Rule<[turn: Turn], ScalingStep | Unread>;

const notifyStaying: MirrorRule = ({ zone, facts, delay, wanted, snapshot }) => {
  if (!delay || isHold(delay) || facts.notified) return undefined;
  const { staying } = planPreparation(zone, wanted, { url: delay.url, clusterDomain: snapshot.clusterDomain });
  return { action: "cancelPreparation", zone, pods: staying };
};

const delayReadable: MirrorRule = ({ delay }) => (delay && isHold(delay) ? delay : undefined);

const prepareLeaving: MirrorRule = (turn) => {
  const { zone, wanted, facts, snapshot } = turn;
  const delay = delayOf(turn);
  if (!delay || facts.answers) return undefined;
  const { leaving } = planPreparation(zone, wanted, { url: delay.url, clusterDomain: snapshot.clusterDomain });
  return { action: "preparePods", zone, wanted, delay, pods: leaving };
};

/** All pods answered, and the last ones have been prepared for long enough. */
const delayOver: MirrorRule = (turn) => {
  const allowed = allowedReplicas(turn);
  return typeof allowed === "number" ? undefined : allowed;
};

/** The reference is read again: it may have changed while the pods answered. */
const confirmReference: MirrorRule = (turn) => {
  const { zone, mirror, facts } = turn;
  if (!delayOf(turn)) return undefined;
  if (!facts.confirmed) return { action: "unread", zone };
  return "unreadable" in facts.confirmed ? unreadable(zone, mirror, facts.confirmed.unreadable) : undefined;
};

const scaleAsAllowed: MirrorRule = (turn) => {
  const { zone, mirror, facts, wanted, snapshot } = turn;
  const replicas = allowedReplicas(turn);
  if (typeof replicas !== "number") return undefined;
  if (delayOf(turn) && readWanted(zone, facts.confirmed) !== wanted) return undefined;
  const why = zone.scaling.forcedReplicas === undefined ? `mirroring ${mirror.kind}/${mirror.name}` : "forced";
  return planScale(zone, { replicas, why }, snapshot);
};

const decideTurn = firstOf([notifyStaying, delayReadable, prepareLeaving, delayOver, confirmReference, scaleAsAllowed]);

/**
 * The opinion on a zone that mirrors and has no leader; undefined for any other zone, if nothing is to change, or if
 * the reference has just changed.
 */
function decideMirror(zone: Zone, snapshot: ScalingSnapshot): ScalingStep | Unread | undefined {
  const { leader, mirror } = zone.scaling;
  if (!mirror || leader !== undefined) return undefined;
  const facts = zoneFactsOf(snapshot, zone);
  const { reference } = facts;
  if (!reference) return { action: "unread", zone };
  if ("unreadable" in reference) return unreadable(zone, mirror, reference.unreadable);
  const wanted = mirroredReplicas(zone, reference);
  const turn = { zone, mirror, facts, delay: readDelay(zone), wanted, snapshot };
  return wanted === zone.replicas ? notifyStaying(turn) : decideTurn(turn);
}

/**
 * The write to the status of the zone's reference, if that differs; undefined while the reference is not read, and
 * after the zone was refused.
 */
function decideWriteBack(zone: Zone, snapshot: ScalingSnapshot): WriteBack | undefined {
  const { mirror } = zone.scaling;
  const { reference, refused, writtenBack } = zoneFactsOf(snapshot, zone);
  if (!mirror?.writeBack || !reference || "unreadable" in reference) return undefined;
  if (refused || writtenBack) return undefined;
  const replicas = currentReplicas(zone, snapshot);
  return reference.reportedReplicas === replicas
    ? undefined
    : { action: "writeBack", zone, reference, name: mirror.name, replicas };
}

/** The zone's replicas, after it was scaled in this tick too. */
function currentReplicas(zone: Zone, { scaled }: ScalingSnapshot): number {
  return scaled?.step.zone.uid === zone.uid ? scaled.step.replicas : zone.replicas;
}

/** The replicas that a mirroring zone is to have: forced ones win. */
function mirroredReplicas(zone: Zone, reference: Reference): number {
  return zone.scaling.forcedReplicas ?? reference.wantedReplicas;
}

function readWanted(zone: Zone, reading: ReferenceReading | undefined): number | undefined {
  return !reading || "unreadable" in reading ? undefined : mirroredReplicas(zone, reading);
}

/** The delay, if it keeps pods from going at once. */
function delayOf({ zone, wanted, delay }: Turn): Delay | undefined {
  return delay && !isHold(delay) && wanted < zone.replicas ? delay : undefined;
}

/** The replicas nearest to the wanted number that the pods' delays allow; undefined before the pods have answered. */
function allowedReplicas(turn: Turn): number | Hold | undefined {
  const { zone, wanted, facts, snapshot } = turn;
  const delay = delayOf(turn);
  if (!delay) return wanted;
  const { answers } = facts;
  if (!answers) return undefined;
  if ("failure" in answers) {
    const message = `${zone.name} is not scaled down: a pod could not be prepared: ${answers.failure}`;
    return { ...hold("PrepareFailed", message, [zone]), dedupKey: zone.name };
  }
  return shrinkTo(
    zone,
    { count: zone.replicas - wanted, youngest: answers.youngest },
    { ms: delay.ms, now: snapshot.now },
  );
}

function unreadable(zone: Zone, { kind, name }: Mirror, why: string): Hold {
  const message = `${zone.name} cannot mirror ${kind}/${name}: ${why}`;
  return { ...hold("ReferenceUnreadable", message, [zone]), dedupKey: `${zone.name} ${kind}/${name}` };
}

function isHold(value: object): value is Hold {
  return "action" in value && value.action === "hold";
}
