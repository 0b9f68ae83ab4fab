/**
 * Reads when zones were last scaled down, from the zone tracker and from the pending downscales of the group's Lease
 * (§2.2, §4.2).
 */
import { absent } from "../../../infra/errors.ts";
import { ownValue } from "../../../infra/json.ts";
import type { Call, Cluster, Ref } from "../../../infra/kubernetes/cluster.ts";
import { configMaps } from "../../../infra/kubernetes/resources.ts";
import { lastDownscaleOf, laterOf } from "../pending.ts";
import { readTracker } from "../tracker.ts";
import type { Zone } from "../../model/zone.ts";
import { gatherPending, nameLease } from "./downscale-lease.ts";

/** Reads a zone tracker; empty if it does not exist. Throws the error of the API server. */
export async function gatherTracker(cluster: Cluster, tracker: Ref, call?: Call): Promise<ReadonlyMap<string, string>> {
  const found = await cluster.get(configMaps, tracker, call).catch(absent);
  return readTracker(found?.data);
}

interface DownscaleQuery {
  /** Name of the zone tracker's ConfigMap. */
  readonly zoneTracker: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/**
 * When the zones of one group were last scaled down, by the zone tracker and by pending downscales; the zones
 * themselves carry their annotations. No pending downscale may be concluded between reading the zones and this. Throws
 * the error of the API server.
 */
export async function gatherDownscales(
  cluster: Cluster,
  zones: readonly Zone[],
  { zoneTracker, now }: DownscaleQuery,
): Promise<ReadonlyMap<string, string>> {
  const [first] = zones;
  if (!first) return new Map();
  const { namespace, group, name } = first;
  const pending = await gatherPending(cluster, { namespace, name: nameLease(group, name) });
  const times = new Map(await gatherTracker(cluster, { namespace, name: zoneTracker }));
  for (const zone of zones) {
    const last = laterOf(times.get(zone.name), lastDownscaleOf(ownValue(pending, zone.name), zone, now));
    if (last !== undefined) times.set(zone.name, last);
  }
  return times;
}
