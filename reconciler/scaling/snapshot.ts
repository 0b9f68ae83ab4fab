/** The facts from which scaling is decided, and its steps: each is decided after the one before it was taken. */
import type { ScaleZone } from "../model/outcome.ts";
import type { Hold } from "../model/decision.ts";
import type { Zone } from "../model/zone.ts";
import type { Delay, Endpoints, YoungPod } from "./delayed.ts";
import type { Resource } from "../../infra/kubernetes/resources.ts";

export interface ScalingSnapshot extends ZoneTimes {
  /** More about zones, by their UIDs: read, or learned from steps, since the group was listed. */
  readonly facts: ReadonlyMap<string, ZoneFacts>;
  /** Why `tracked` cannot be read, if it cannot. */
  readonly untracked?: string;
  /** The zone that has been scaled in this tick: no other one is. */
  readonly scaled?: Scaled;
  readonly clusterDomain: string;
}

export interface ZoneFacts {
  /** The reference of a mirroring zone, read when the zone's turn came. */
  readonly reference?: ReferenceReading;
  /** The pods that stay have been notified of it. */
  readonly notified?: true;
  /** The answers of the pods that are to go; undefined if they were not called. */
  readonly answers?: PodAnswers;
  /** The reference, read again after the pods had answered. */
  readonly confirmed?: ReferenceReading;
  /** Why the zone was not scaled: by the last read before the write, or by the API server. */
  readonly refused?: Hold;
  /** Its replicas were written back to the reference, or why they could not be. */
  readonly writtenBack?: "done" | { readonly failure: string };
}

export type ReferenceReading = Reference | { readonly unreadable: string };

/** The answers of the pods that are to go: the last pod whose delay is not over, or the message of one that failed. */
export type PodAnswers = { readonly youngest: YoungPod | undefined } | { readonly failure: string };

interface Scaled {
  readonly step: ScaleZone;
  /** Why zones before it were not. */
  readonly scalingHolds: readonly Hold[];
}

export const zoneFactsOf = ({ facts }: ScalingSnapshot, { uid }: Zone): ZoneFacts => facts.get(uid) ?? {};

interface Findings {
  readonly facts: ZoneFacts;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The snapshot with more facts about a zone, as of the moment at which they were known. */
export function addFacts(snapshot: ScalingSnapshot, zone: Zone, { facts, now }: Findings): ScalingSnapshot {
  return {
    ...snapshot,
    now,
    facts: new Map(snapshot.facts).set(zone.uid, { ...zoneFactsOf(snapshot, zone), ...facts }),
  };
}

/** POST to the pods that are to go when the zone is to have `wanted` replicas, in order. */
export interface PreparePods {
  readonly action: "preparePods";
  readonly zone: Zone;
  readonly wanted: number;
  readonly pods: Endpoints;
  readonly delay: Delay;
}

interface CancelPreparation {
  readonly action: "cancelPreparation";
  readonly zone: Zone;
  readonly pods: Endpoints;
}

/** Tell the reference, in its `status.replicas`, how many replicas the zone has. */
export interface WriteBack {
  readonly action: "writeBack";
  readonly zone: Zone;
  readonly reference: Reference;
  readonly name: string;
  readonly replicas: number;
}

export type ScalingStep = PreparePods | CancelPreparation | ScaleZone | WriteBack | Hold;

export type ScaleDecision = ScaleZone | Hold;

interface Target {
  readonly replicas: number;
  readonly why: string;
}

/** The step that scales a zone; shrinking is recorded if any zone of the group has a minimum time. */
export function planScale(
  zone: Zone,
  { replicas, why }: Target,
  { zones, now }: Pick<ZoneTimes, "zones" | "now">,
): ScaleZone {
  const record = replicas < zone.replicas && zones.some(({ scaling }) => scaling.minTime !== undefined);
  const message = `scaling ${zone.name} from ${zone.replicas} to ${replicas} replicas, ${why}`;
  return { action: "scaleZone", zone, replicas, message, ...(record && { recordAt: now }) };
}

/** The zones of one group, and when they were last scaled down. */
export interface ZoneTimes {
  /** In byte order of their names. */
  readonly zones: readonly Zone[];
  /**
   * When each zone was last scaled down, by the zone tracker's ConfigMap and by the group's downscale Lease; undefined
   * if either cannot be read.
   */
  readonly tracked: ReadonlyMap<string, string> | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A resource that a zone mirrors, with the values of its scale. */
export interface Reference {
  readonly resource: Resource;
  readonly wantedReplicas: number;
  /** `status.replicas`: the replicas that were written back. */
  readonly reportedReplicas: number;
}
