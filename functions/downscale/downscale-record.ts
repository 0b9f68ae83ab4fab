/**
 * Records the time of a zone's last downscale: in an annotation of the StatefulSet, or in the zone tracker's ConfigMap
 * (§4.2, §4.9).
 */
import type { Clock } from "../../infra/clock.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { absent, isSuperseded } from "../../infra/errors.ts";
import { type ConfigMap, configMaps, type StatefulSet } from "../../infra/kubernetes/resources.ts";
import { ownValue } from "../../infra/json.ts";
import { retryOnConflict } from "../../infra/kubernetes/retry-on-conflict.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { gatherTracker } from "../../reconciler/scaling/act/gather-scaling.ts";
import { ANNOTATIONS } from "../../reconciler/model/annotations.ts";
import { readTracker, timeBefore, trackerEntry } from "../../reconciler/downscale/tracker.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import type { AdmissionRequest, Answer } from "../http/webhook.ts";

/** Time (RFC 3339) of an earlier downscale of the same StatefulSet that was admitted but did not happen. */
type Unsettled = string | undefined;

export interface DownscaleRecord {
  /**
   * The times of the last downscales in the zone tracker, by StatefulSet of the namespace. In both modes the later of
   * tracker and annotation counts: the reconciler writes annotations, and the mode may have changed.
   */
  load(namespace: string, group: readonly Zone[], call: Call): Promise<ReadonlyMap<string, string>>;
  /**
   * Records a downscale that happens now; it replaces `earlier`, which did not happen. Resolves with the JSON patch for
   * the response, if the record needs one. A Scale needs none: the Lease records its downscale.
   */
  save(request: AdmissionRequest, earlier: Unsettled, call: Call): Promise<Answer["patch"]>;
  /** Messages for times that cannot be read or written. */
  readonly messages: { readonly unreadable: string; readonly unsaved: string };
}

interface Tools {
  readonly cluster: Cluster;
  readonly clock: Clock;
}

/** `tracker` names the zone tracker's ConfigMap. */
export function recordInAnnotation({ cluster, clock }: Tools, tracker: string): DownscaleRecord {
  return {
    messages: {
      unreadable: "parsing downscale annotations failed.",
      unsaved: "adding an annotation to the statefulset failed.",
    },
    load: async (namespace, _group, call) => await gatherTracker(cluster, { namespace, name: tracker }, call),
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
    messages: {
      // The original's words, to the letter.
      unreadable: "parsing parsing downscale timestamps from the zone ConfigMap failed.",
      unsaved: "setting downscale timestamp in the zone ConfigMap failed.",
    },
    // A new tracker records a downscale of every zone now: their true times are unknown.
    async load(namespace, group, call) {
      const zones = group.map((zone) => zone.name);
      const attempt = async (): Promise<ConfigMap> => {
        const existing = await cluster.get(configMaps, { namespace, name }, call).catch(absent);
        return existing ?? (await create(namespace, zones, call));
      };
      return readTracker((await retryOnConflict(attempt, { clock, call, when: isSuperseded })).data);
    },
    async save({ namespace = "", name: zone = "" }, earlier, call) {
      const ref = { namespace, name };
      const attempt = async (): Promise<ConfigMap> => {
        const found = await cluster.get(configMaps, ref, call).catch(absent);
        if (!found) return create(namespace, [zone], call);
        const entry = ownValue(found.data, zone);
        const replaced = earlier === undefined ? undefined : timeBefore(entry, earlier);
        const before = replaced ?? readTracker(found.data).get(zone) ?? "";
        return cluster.replace(
          configMaps,
          { ...ref, body: { ...found, data: { ...found.data, [zone]: trackerEntry(clock.now(), before) } } },
          call,
        );
      };
      await retryOnConflict(attempt, { clock, call, when: isSuperseded });
      return undefined;
    },
  };
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
