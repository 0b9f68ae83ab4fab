/** Gathers what the other zones of a group have to say about a downscale, and asks whether it may be (§4.7). */
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { refuseByHealth } from "../../reconciler/downscale/decide.ts";
import { findAdmitted, lastDownscaleOf, laterOf, type PendingDownscales } from "../../reconciler/downscale/pending.ts";
import { createFreshness } from "../../infra/kubernetes/freshness.ts";
import { gatherGroup, gatherGroupZones } from "../../reconciler/gather.ts";
import { refuseByTime } from "../../reconciler/scaling/min-time.ts";
import type { DownscaleRecord } from "./downscale-record.ts";
import type { Context } from "../http/webhook.ts";

export interface Place {
  readonly namespace: string;
  readonly group: string;
  /** The StatefulSet that shrinks. */
  readonly name: string;
  /** What the Lease of the group noted when it was taken. */
  readonly pending: PendingDownscales;
}

interface Tools {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly record: DownscaleRecord;
}

export interface Refusal {
  readonly reason: string;
  /** The end of the sentence that upstream says. */
  readonly message: string;
}

/** The refusal, if the downscale has to wait or it cannot be found out. */
export async function refuseForOthers(place: Place, tools: Tools, { signal, log }: Context): Promise<Refusal | undefined> {
  const call = { signal };
  const source = { cluster: tools.cluster, freshness: createFreshness(tools.clock, log) };
  const or = (reason: string, message: string) => (error: unknown) => {
    log.warn(message, { error, group: place.group });
    return { reason, message };
  };
  const group = await gatherGroupZones(place, source, call).catch(or("GroupUnknown", "finding other statefulsets failed."));
  if ("reason" in group) return group;
  const written = await tools.record.load(place.namespace, group, call).catch(or("DownscalesUnknown", "loading zones failed."));
  if ("reason" in written) return written;
  const others = group.filter(({ name }) => name !== place.name);
  const now = tools.clock.now();
  const times = others.map((zone) => ({
    name: zone.name,
    lastDownscale: laterOf(written.get(zone.name), lastDownscaleOf(place.pending[zone.name], zone, now)),
    minTime: zone.scaling.minTime,
  }));
  const early = refuseByTime(times, now, tools.record.words.unreadable);
  if (early) return early;
  const admitted = findAdmitted(place.pending, others, now);
  if (admitted) return { reason: "OtherZoneNotReady", message: admitted.what };
  return await gatherGroup(others, source, call).then(
    ({ zones }) => refuseByHealth(zones),
    or("ZonesUnknown", "an error occurred while checking whether StatefulSets have non-updated replicas"),
  );
}
