/** Reads what only scaling needs: the zone tracker, and the resources that zones mirror. */
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { absent, RolloutError } from "../../infra/errors.ts";
import { configMaps, type Resource, type Scale } from "../../infra/kubernetes/resources.ts";
import { gatherPending, nameLease } from "../pending-downscales/downscale-lease.ts";
import { lastDownscaleOf, laterOf } from "../downscale/pending.ts";
import type { Mirror } from "../model/scaling.ts";
import { readTracker } from "../model/tracker.ts";
import type { Zone } from "../model/zone.ts";
import type { ReferenceScale } from "../scaling/mirror.ts";

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

/** A resource that a zone mirrors, and what its scale says. */
export interface Reference {
  readonly resource: Resource;
  readonly scale: ReferenceScale;
}

export interface References {
  /** Reads the scale of the resource, freshly; throws if the server knows no such kind, or what it says. */
  readonly read: (namespace: string, mirror: Mirror) => Promise<Reference>;
}

/** Remembers under which resource each kind was found, until it is no longer found there: a CRD may come, go, or change its version. */
export function createReferences(cluster: Cluster): References {
  const known = new Map<string, Promise<readonly Resource[]>>();

  async function tryEach(namespace: string, name: string, resources: readonly Resource[]): Promise<Reference> {
    let first: unknown;
    for (const resource of resources) {
      try {
        const scale = (await cluster.get(resource, { namespace, name, subresource: "scale" })) as Scale;
        return { resource, scale: { wanted: scale.spec?.replicas ?? 0, told: scale.status?.replicas ?? 0 } };
      } catch (error) {
        first ??= error;
      }
    }
    throw first;
  }

  return {
    async read(namespace, { group, kind, name, apiVersion }) {
      if (group === undefined) throw new RolloutError("Invalid", `"${apiVersion}" is no API version`);
      const key = `${group}/${kind}`;
      const found = known.get(key) ?? cluster.discover(group, kind);
      known.set(key, found);
      try {
        const resources = await found;
        if (resources.length === 0) throw new RolloutError("NotFound", `the API server knows no kind ${kind} in group "${group}"`);
        return await tryEach(namespace, name, resources);
      } catch (error) {
        known.delete(key);
        throw error;
      }
    },
  };
}
