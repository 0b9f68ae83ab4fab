/**
 * Reads the facts that only scaling needs, on demand: the times of the last downscales, and the resources that zones
 * mirror.
 */
import { messageOf } from "../../../infra/errors.ts";
import type { Zone } from "../../model/zone.ts";
import { gatherDownscales } from "../../downscale/act/gather-downscales.ts";
import { wantsDownscale } from "../leader.ts";
import { addFacts, zoneFactsOf, type ReferenceReading, type ScalingSnapshot } from "../snapshot.ts";
import type { ZoneTimes } from "../facts.ts";
import type { Scaler } from "./scaler.ts";

/** The snapshot for the first decision about a group. */
export async function gatherScaling(zones: readonly Zone[], scaler: Scaler): Promise<ScalingSnapshot> {
  const isScaled = !zones.some((zone) => zone.terminating);
  const times = await gatherTimes(zones, isScaled && wantsDownscale({ zones }), scaler);
  return { ...times, facts: new Map(), clusterDomain: scaler.clusterDomain };
}

/** The zones, and the times of their last downscales if these are needed. */
export async function gatherTimes(
  zones: readonly Zone[],
  isNeeded: boolean,
  { cluster, zoneTracker, clock }: Pick<Scaler, "cluster" | "zoneTracker" | "clock">,
): Promise<ZoneTimes & Pick<ScalingSnapshot, "untracked">> {
  const at = clock.now();
  try {
    const tracked = isNeeded
      ? await gatherDownscales(cluster, zones, { zoneTracker, now: at })
      : new Map<string, string>();
    return { zones, tracked, now: at };
  } catch (error) {
    return { zones, tracked: undefined, now: at, untracked: messageOf(error) };
  }
}

/** Reads the zone's reference: for the first time, or again after its pods have answered. */
export async function gatherReference(zone: Zone, snapshot: ScalingSnapshot, scaler: Scaler): Promise<ScalingSnapshot> {
  const { mirror } = zone.scaling;
  if (!mirror) return snapshot;
  const now = scaler.clock.now();
  const reading: ReferenceReading = await scaler.references
    .read(zone.namespace, mirror)
    .catch((error: unknown) => ({ unreadable: messageOf(error) }));
  const isAgain = zoneFactsOf(snapshot, zone).reference !== undefined;
  return addFacts(snapshot, zone, { facts: isAgain ? { confirmed: reading } : { reference: reading }, now });
}
