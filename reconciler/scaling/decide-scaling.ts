/**
 * The scaling of a group (§2.0): one step for one zone, leaders and followers first, then mirroring zones, in the
 * order of names. After a zone that waits, the next one has its turn; once a zone has been scaled, only its write-back
 * is left.
 *
 *   gather -> decideScaling -> step -> its outcome is a fact of the next snapshot -> decideScaling -> ... -> a hold, or nothing is left
 */
import { firstOf, type Rule } from "../../infra/rules.ts";
import type { Hold } from "../model/decision.ts";
import type { Zone } from "../model/zone.ts";
import { decideFollower } from "./leader.ts";
import { decideMirror, decideWriteBack, type Unread } from "./mirror.ts";
import { refusedGroup } from "../model/refused-group.ts";
import { zoneFactsOf, type ScalingSnapshot } from "./snapshot.ts";
import type { ScalingStep } from "./steps.ts";

export interface ScalingDecision {
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
