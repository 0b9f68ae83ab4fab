/** One pass over a group's scaling: what it works with, what it has found out, and its one way to scale a zone. */
import { isRefused, messageOf, RolloutError } from "../../infra/errors.ts";
import type { PodHttp } from "../../infra/pod-http.ts";
import { changeReplicas } from "../act.ts";
import type { Actor } from "../actor.ts";
import { gatherPending, nameLease } from "../pending-downscales/downscale-lease.ts";
import { findAdmitted } from "../downscale/pending.ts";
import { gatherDownscales, type References } from "./gather-scaling.ts";
import { gatherGroup, gatherGroupZones } from "../gather.ts";
import { hold, type Hold } from "../model/decision.ts";
import type { Zone } from "../model/zone.ts";
import type { Note } from "./prepare.ts";
import type { Teller } from "./teller.ts";
import { decideFollower } from "../scaling/leader.ts";
import type { ScaleZone, ScalingSnapshot } from "../scaling/snapshot.ts";
import { minTimeOver } from "../scaling/min-time.ts";
import { othersSteady } from "../scaling/steady.ts";

export interface Scaler extends Actor {
  readonly references: References;
  readonly podHttp: PodHttp;
  readonly teller: Teller;
  readonly clusterDomain: string;
  /** Name of the zone tracker's ConfigMap. */
  readonly zoneTracker: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Ends requests to pods. */
  readonly stop: AbortSignal;
}

export interface Pass {
  readonly zones: readonly Zone[];
  readonly scaler: Scaler;
  /** Why zones were not scaled. */
  readonly holds: Hold[];
  readonly notes: Note[];
}

/**
 * Carries the decision out; false if it had to wait or was refused. After anything that it throws nothing else may be done for the group before it
 * is gathered again: `Conflict`, `NotFound` and `StaleRead` if it has changed since it was read, `LeaseLost`, `Cancelled`, and what leaves open
 * whether the write took effect.
 */
export async function scale(decision: ScaleZone, pass: Pass): Promise<boolean> {
  const { zone, replicas, message } = decision;
  try {
    const why = replicas < zone.replicas && zone.scaling.forced === undefined ? await whyNotShrink(decision, pass) : undefined;
    if (why) pass.holds.push(why);
    else await changeReplicas(decision, pass.scaler);
    return !why;
  } catch (error) {
    // Anything else: the group has changed, or the write may have taken effect. What was read says nothing any more.
    if (!isRefused(error)) throw error;
    pass.holds.push(hold("ScaleRefused", `${message}, was not done: ${error.message}`, [zone], `${zone.name} ${replicas} ${error.code}`));
    return false;
  }
}

/** All that must hold when a zone shrinks, looked at anew: since the group was listed, pods may have taken their time, or other groups. */
async function whyNotShrink({ zone, replicas }: ScaleZone, { scaler }: Pass): Promise<Hold | undefined> {
  const { cluster, freshness } = scaler;
  const zones = await gatherGroupZones(cluster, zone, freshness);
  const same = zones.find(({ uid, resourceVersion }) => uid === zone.uid && resourceVersion === zone.resourceVersion);
  if (!same) throw new RolloutError("Conflict", `${zone.name} has changed since it was read`);
  // Of a tracker that cannot be read the hold tells.
  const snapshot = await snapshotOf({ zones, scaler, notes: [] }, same.scaling.minTime !== undefined || same.scaling.leader !== undefined);
  if (same.scaling.leader === undefined) {
    const early = minTimeOver(same, snapshot, "optional");
    if (early) return early;
  } else {
    const anew = decideFollower(same, snapshot);
    if (anew?.action === "hold") return anew;
    if (anew?.replicas !== replicas) throw new RolloutError("Conflict", `the leader of ${zone.name} has changed since it was read`);
  }
  return othersSteady(same, await gatherGroup(cluster, zones, freshness)) ?? (await othersAdmitted(same, zones, scaler));
}

/** The hold while another zone's downscale was admitted by the webhook and may still be stored. Read last, as one may be admitted at any time; throws what the cluster says. */
async function othersAdmitted(zone: Zone, zones: readonly Zone[], { cluster, now }: Scaler): Promise<Hold | undefined> {
  const pending = await gatherPending(cluster, { namespace: zone.namespace, name: nameLease(zone.group, zone.name) });
  const others = zones.filter(({ uid }) => uid !== zone.uid);
  const admitted = findAdmitted(pending, others, now());
  if (!admitted) return undefined;
  const message = `${zone.name} waits to shrink: ${admitted.what}`;
  return hold("OtherZoneNotReady", message, [zone, admitted.zone], `${zone.name} after ${admitted.zone.name}`);
}

/** What decisions look at; with the zone tracker only where it matters. */
export async function snapshotOf(
  { zones, scaler, notes }: Pick<Pass, "zones" | "scaler" | "notes">,
  withTracker: boolean,
): Promise<ScalingSnapshot> {
  const unreadable = (error: unknown): undefined => {
    notes.push({ level: "warn", text: `when zones were last scaled down cannot be read: ${messageOf(error)}` });
  };
  const now = scaler.now();
  const tracked = withTracker ? await gatherDownscales(scaler.cluster, zones, scaler.zoneTracker, now).catch(unreadable) : new Map();
  return { zones, tracked, now };
}
