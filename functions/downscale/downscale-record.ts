/** Where it is written down when a zone was last scaled down: an annotation of the StatefulSet, or the zone tracker's ConfigMap (§4.2, §4.9). */
import type { Clock } from "../../infra/clock.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { absent, isSuperseded } from "../../infra/errors.ts";
import { type ConfigMap, configMaps, type StatefulSet } from "../../infra/kubernetes/resources.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { laterOf } from "../../reconciler/downscale/pending.ts";
import { gatherTracker } from "../../reconciler/pending-downscales/gather-downscales.ts";
import { ANNOTATIONS } from "../../reconciler/model/annotations.ts";
import { readTracker, timeBefore, trackerEntry } from "../../reconciler/model/tracker.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import type { AdmissionRequest, Answer } from "../http/webhook.ts";

/** When a downscale of the same StatefulSet was admitted that has not happened, RFC 3339. */
type Unsettled = string | undefined;

export interface DownscaleRecord {
  /** When each zone of the group was last scaled down, as it is written, by StatefulSet. */
  load(namespace: string, group: readonly Zone[], call: Call): Promise<ReadonlyMap<string, string | undefined>>;
  /** Writes down that it is now, in place of `earlier` if that has not happened; resolves with the patch that has to go into the answer, if that is the way. A Scale has none: its Lease remembers it. */
  save(request: AdmissionRequest, earlier: Unsettled, call: Call): Promise<Answer["patch"]>;
  /** What is said when times cannot be read or written. */
  readonly words: { readonly unreadable: string; readonly unsaved: string };
}

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
      const tracked = await gatherTracker(cluster, { namespace, name: tracker }, call);
      return new Map(group.map(({ name, scaling }) => [name, laterOf(scaling.lastDownscale, tracked.get(name))]));
    },
    async save(request) {
      const annotations = { [ANNOTATIONS.lastDownscale]: formatTimestamp(clock.now()) };
      return request.kind.kind === "StatefulSet" ? patchOf(request.object, annotations) : undefined;
    },
  };
}

export function recordInTracker({ cluster, clock }: Tools, name: string): DownscaleRecord {
  const create = (namespace: string, zones: readonly string[], call: Call): Promise<ConfigMap> => {
    const data = Object.fromEntries(zones.map((zone) => [zone, trackerEntry(clock.now())]));
    return cluster.create(
      configMaps,
      { namespace, body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data } },
      call,
    );
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
    async save({ namespace = "", name: zone = "" }, earlier, call) {
      const ref = { namespace, name };
      await untilSettled(async () => {
        const found = await cluster.get(configMaps, ref, call).catch(absent);
        if (!found) return create(namespace, [zone], call);
        const entry = found.data?.[zone];
        const replaced = earlier === undefined ? undefined : timeBefore(entry, earlier);
        const before = replaced ?? readTracker(found.data).get(zone) ?? "";
        return cluster.replace(
          configMaps,
          { ...ref, body: { ...found, data: { ...found.data, [zone]: trackerEntry(clock.now(), before) } } },
          call,
        );
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
      if (tries === TRIES || !isSuperseded(error)) throw error;
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
