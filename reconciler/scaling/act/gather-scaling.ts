/**
 * Reads the facts that only scaling needs, on demand: the times of the last downscales, and the resources that zones
 * mirror.
 */
import { messageOf, absent, RolloutError } from "../../../infra/errors.ts";
import type { Zone } from "../../model/zone.ts";
import { wantsDownscale } from "../leader.ts";
import {
  addFacts,
  zoneFactsOf,
  type ReferenceReading,
  type ScalingSnapshot,
  type ZoneTimes,
  type Reference,
} from "../snapshot.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import type { MayDownscale } from "../../budget/act/may-disrupt.ts";
import type { PodNotifier } from "./pod-notifier.ts";
import { ownValue } from "../../../infra/json.ts";
import type { Call, Cluster, Ref } from "../../../infra/kubernetes/cluster.ts";
import { configMaps, type Resource, type Scale } from "../../../infra/kubernetes/resources.ts";
import { lastDownscaleOf, laterOf } from "../../downscale/pending.ts";
import { readTracker } from "../../downscale/tracker.ts";
import { gatherPending, nameLease } from "../../downscale/act/downscale-lease.ts";
import { once } from "../../../infra/once.ts";
import { describeBadName, type Mirror } from "../../model/annotations.ts";

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

export interface ScalingTools {
  readonly references: References;
  readonly podHttp: PodHttp;
  readonly notifier: PodNotifier;
  readonly mayDownscale: MayDownscale;
  readonly clusterDomain: string;
  /** Name of the zone tracker's ConfigMap. */
  readonly zoneTracker: string;
}

export interface Scaler extends Context, ScalingTools {}

/** Reads a zone tracker (§4.2); empty if it does not exist. Throws the error of the API server. */
export async function gatherTracker(cluster: Cluster, tracker: Ref, call?: Call): Promise<ReadonlyMap<string, string>> {
  const found = await cluster.get(configMaps, tracker, call).catch(absent);
  return readTracker(found?.data);
}

/**
 * When the zones of one group were last scaled down, by the zone tracker and by pending downscales; the zones
 * themselves carry their annotations. No pending downscale may be concluded between reading the zones and this. Throws
 * the error of the API server.
 */
async function gatherDownscales(
  cluster: Cluster,
  zones: readonly Zone[],
  { zoneTracker, now }: Pick<ScalingTools, "zoneTracker"> & Pick<ZoneTimes, "now">,
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

// The resources that zones mirror (§2.4), through their scale subresource.

type References = ReturnType<typeof createReferences>;

interface Kind {
  readonly group: string;
  readonly kind: string;
}

/** Caches the resource of each kind until a read fails: a CRD may be created, deleted, or change its version. */
export function createReferences(cluster: Cluster) {
  const known = new Map<string, Promise<readonly Resource[]>>();
  const keyOf = ({ group, kind }: Kind): string => `${group}/${kind}`;
  const discover = once(({ group, kind }: Kind) => cluster.discover(group, kind), keyOf, known);

  async function tryEach(namespace: string, name: string, resources: readonly Resource[]): Promise<Reference> {
    let first: unknown;
    for (const resource of resources) {
      try {
        const scale = (await cluster.get(resource, { namespace, name, subresource: "scale" })) as Scale;
        return { resource, wantedReplicas: scale.spec?.replicas ?? 0, reportedReplicas: scale.status?.replicas ?? 0 };
      } catch (error) {
        first ??= error;
      }
    }
    throw first;
  }

  return {
    /**
     * Reads the current scale of the resource; throws `NotFound` if the server does not know the kind, or the error of
     * the API server.
     */
    read: async (namespace: string, mirror: Mirror): Promise<Reference> => {
      const { group, kind, name, apiVersion } = mirror;
      const problem = describeBadName(mirror);
      if (problem !== undefined) throw new RolloutError("Invalid", problem);
      if (group === undefined) throw new RolloutError("Invalid", `"${apiVersion}" is not an API version`);
      const wanted = { group, kind };
      try {
        const resources = await discover(wanted);
        if (resources.length === 0)
          throw new RolloutError("NotFound", `the API server has no kind ${kind} in group "${group}"`);
        return await tryEach(namespace, name, resources);
      } catch (error) {
        known.delete(keyOf(wanted));
        throw error;
      }
    },
  };
}
