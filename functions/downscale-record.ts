/** Where it is written down when a zone was last scaled down: an annotation of the StatefulSet, or the zone tracker's ConfigMap [4.2, 4.9]. */
import type { Clock } from "../infra/clock.ts";
import type { Call, Cluster } from "../infra/cluster.ts";
import { absent, hasCode } from "../infra/errors.ts";
import { type ConfigMap, configMaps, type StatefulSet, statefulSets } from "../infra/resources.ts";
import { formatTimestamp, parseTimestamp } from "../infra/timestamp.ts";
import { gatherTracker } from "../reconciler/gather-scaling.ts";
import { ANNOTATIONS } from "../reconciler/model/annotations.ts";
import { readTracker, trackerEntry } from "../reconciler/model/tracker.ts";
import type { Zone } from "../reconciler/model/zone.ts";
import type { AdmissionRequest, Answer } from "./handler.ts";

export interface DownscaleRecord {
  /** When each zone of the group was last scaled down, as it is written, by StatefulSet. */
  load(namespace: string, group: readonly Zone[], call: Call): Promise<ReadonlyMap<string, string | undefined>>;
  /** Writes down that it is now; resolves with the patch that has to go into the answer, if that is the way. */
  save(request: AdmissionRequest, zone: StatefulSet, call: Call): Promise<Answer["patch"]>;
  /** What is said when times cannot be read or written. */
  readonly words: { readonly unreadable: string; readonly unsaved: string };
}

/** The API server runs admission again when our own patch made its write conflict; that must not make it conflict again [4.3]. */
const JUST_NOW_MS = 10_000;
const TRIES = 5;

interface Tools {
  readonly cluster: Cluster;
  readonly clock: Clock;
}

/** `tracker` names the ConfigMap of the other way, whose times count as well: an installation may have gone by it before. */
export function recordInAnnotation({ cluster, clock }: Tools, tracker: string): DownscaleRecord {
  return {
    words: { unreadable: "parsing downscale annotations failed.", unsaved: "adding an annotation to the statefulset failed." },
    async load(namespace, group, call) {
      const tracked = await gatherTracker(cluster, namespace, tracker, call);
      return new Map(group.map(({ name, scaling }) => [name, newer(scaling.lastDownscale, tracked.get(name))]));
    },
    async save(request, zone, call) {
      const now = clock.now();
      const annotations = { [ANNOTATIONS.lastDownscale]: formatTimestamp(now) };
      if (request.kind.kind === "StatefulSet") return patchOf(request.object, annotations);
      const age = now - (parseTimestamp(zone.metadata?.annotations?.[ANNOTATIONS.lastDownscale] ?? "") ?? Number.NEGATIVE_INFINITY);
      if (age >= 0 && age < JUST_NOW_MS) return undefined;
      const { namespace = "", name = "" } = request;
      await cluster.patch(statefulSets, { namespace, name }, "strategic", { metadata: { annotations } }, call);
      return undefined;
    },
  };
}

export function recordInTracker({ cluster, clock }: Tools, name: string): DownscaleRecord {
  const create = (namespace: string, zones: readonly string[], call: Call): Promise<ConfigMap> => {
    const data = Object.fromEntries(zones.map((zone) => [zone, trackerEntry(clock.now())]));
    return cluster.create(configMaps, namespace, { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data }, call);
  };
  return {
    words: {
      unreadable: "parsing parsing downscale timestamps from the zone ConfigMap failed.",
      unsaved: "setting downscale timestamp in the zone ConfigMap failed.",
    },
    // Nothing is known at first, so that every zone counts as scaled down just now.
    async load(namespace, group, call) {
      const zones = group.map((zone) => zone.name);
      const found = await untilSettled(async () => {
        const known = await cluster.get(configMaps, { namespace, name }, call).catch(absent);
        return known ?? (await create(namespace, zones, call));
      });
      return readTracker(found.data);
    },
    async save({ namespace = "", name: zone = "" }, _zone, call) {
      const ref = { namespace, name };
      await untilSettled(async () => {
        const found = await cluster.get(configMaps, ref, call).catch(absent);
        if (!found) return create(namespace, [zone], call);
        return cluster.replace(configMaps, ref, { ...found, data: { ...found.data, [zone]: trackerEntry(clock.now()) } }, call);
      });
      return undefined;
    },
  };
}

/** Does it again when somebody else was faster. */
async function untilSettled<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (tries === TRIES || !hasCode(error, "Conflict", "AlreadyExists", "NotFound")) throw error;
    }
  }
}

/** RFC 6902; a slash in a key is written `~1` (RFC 6901). */
function patchOf(object: unknown, annotations: Readonly<Record<string, string>>): Answer["patch"] {
  const existing = (object as StatefulSet | undefined)?.metadata?.annotations;
  if (!existing) return [{ op: "add", path: "/metadata/annotations", value: annotations }];
  return Object.entries(annotations).map(([key, value]) => ({
    op: "add",
    path: `/metadata/annotations/${key.replaceAll("/", "~1")}`,
    value,
  }));
}

/** Of two times the later one, or the one that is none. */
function newer(one: string | undefined, other: string | undefined): string | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return (parseTimestamp(one) ?? Number.POSITIVE_INFINITY) >= (parseTimestamp(other) ?? Number.POSITIVE_INFINITY) ? one : other;
}
