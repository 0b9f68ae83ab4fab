/** Reads what only scaling needs, and only once it is needed: when zones were last scaled down, and the resources that zones mirror. */
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { absent, messageOf } from "../../infra/errors.ts";
import { configMaps } from "../../infra/kubernetes/resources.ts";
import { lastDownscaleOf, laterOf } from "../downscale/pending.ts";
import { readTracker } from "../model/tracker.ts";
import type { Zone } from "../model/zone.ts";
import { gatherPending, nameLease } from "../pending-downscales/downscale-lease.ts";
import { wantsDownscale } from "../scaling/leader.ts";
import { addFacts, factsOf, type ReferenceReading, type ScalingSnapshot, type ZoneTimes } from "../scaling/snapshot.ts";
import type { Scaler } from "./scaler.ts";

/** The snapshot for the first decision about a group. */
export async function gatherScaling(zones: readonly Zone[], scaler: Scaler): Promise<ScalingSnapshot> {
  const isScaled = !zones.some((zone) => zone.terminating);
  const times = await gatherTimes(zones, isScaled && wantsDownscale({ zones }), scaler);
  return { ...times, facts: new Map(), clusterDomain: scaler.clusterDomain };
}

/** Zones with the times that they were last scaled down at, these only where they matter. */
export async function gatherTimes(
  zones: readonly Zone[],
  isNeeded: boolean,
  { cluster, zoneTracker, now }: Pick<Scaler, "cluster" | "zoneTracker" | "now">,
): Promise<ZoneTimes & Pick<ScalingSnapshot, "untracked">> {
  const at = now();
  try {
    const tracked = isNeeded ? await gatherDownscales(cluster, zones, zoneTracker, at) : new Map<string, string>();
    return { zones, tracked, now: at };
  } catch (error) {
    return { zones, tracked: undefined, now: at, untracked: messageOf(error) };
  }
}

/** The zone's reference, read for the first time, or again after its pods have answered. */
export async function gatherReference(zone: Zone, snapshot: ScalingSnapshot, { references, now }: Scaler): Promise<ScalingSnapshot> {
  const { mirror } = zone.scaling;
  if (!mirror) return snapshot;
  const at = now();
  const unreadable = (error: unknown): ReferenceReading => ({ unreadable: messageOf(error) });
  const reading = await references.read(zone.namespace, mirror).catch(unreadable);
  return addFacts(snapshot, zone, factsOf(snapshot, zone).reference ? { confirmed: reading } : { reference: reading }, at);
}

/** The zone tracker of a namespace; empty if there is none. Throws what the cluster says. */
export async function gatherTracker(cluster: Cluster, namespace: string, name: string, call?: Call): Promise<ReadonlyMap<string, string>> {
  const found = await cluster.get(configMaps, { namespace, name }, call).catch(absent);
  return readTracker(found?.data);
}

/**
 * When the zones of one group were last scaled down: by the zone tracker and by downscales that are pending; what their annotations say comes
 * with them. Nothing settles a pending one between reading the zones and this. Throws what the cluster says.
 */
export async function gatherDownscales(
  cluster: Cluster,
  zones: readonly Zone[],
  tracker: string,
  now: number,
): Promise<ReadonlyMap<string, string>> {
  const [first] = zones;
  if (!first) return new Map();
  const { namespace, group, name } = first;
  const pending = await gatherPending(cluster, { namespace, name: nameLease(group, name) });
  const times = new Map(await gatherTracker(cluster, namespace, tracker));
  for (const zone of zones) {
    const last = laterOf(times.get(zone.name), lastDownscaleOf(pending[zone.name], zone, now));
    if (last !== undefined) times.set(zone.name, last);
  }
  return times;
}
