/** Gathers the other zones of a group and decides whether they forbid a downscale (§4.7). */
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { type DownscaleRefusal, refuseByHealth } from "../../reconciler/downscale/decide.ts";
import { findAdmitted, lastDownscaleOf, laterOf, type PendingDownscales } from "../../reconciler/downscale/pending.ts";
import { createFreshness } from "../../infra/kubernetes/freshness.ts";
import { gatherGroup, gatherGroupZones } from "../../reconciler/gather.ts";
import { refuseByTime } from "../../reconciler/scaling/min-time.ts";
import type { DownscaleRecord } from "./downscale-record.ts";
import type { Context } from "../http/webhook.ts";

export interface ShrinkingZone {
  readonly namespace: string;
  readonly group: string;
  /** Name of the StatefulSet. */
  readonly name: string;
  /** The pending downscales that the group's Lease recorded when it was taken. */
  readonly pending: PendingDownscales;
}

interface Tools {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly record: DownscaleRecord;
}

/** The refusal of a downscale that must wait for another zone, or that cannot be decided; undefined if it may proceed. */
export async function refuseForOtherZones(
  shrinking: ShrinkingZone,
  tools: Tools,
  { signal, log }: Context,
): Promise<DownscaleRefusal | undefined> {
  const call = { signal };
  const source = { cluster: tools.cluster, freshness: createFreshness(tools.clock, log) };
  const refuseOnError = (reason: DownscaleRefusal["reason"], message: string) => (error: unknown) => {
    log.warn(message, { namespace: shrinking.namespace, group: shrinking.group, zone: shrinking.name, error });
    return { reason, message };
  };
  const group = await gatherGroupZones(shrinking, source, call).catch(refuseOnError("GroupUnknown", "finding other statefulsets failed."));
  if ("reason" in group) return group;
  const recorded = await tools.record
    .load(shrinking.namespace, group, call)
    .catch(refuseOnError("DownscalesUnknown", "loading zones failed."));
  if ("reason" in recorded) return recorded;
  const others = group.filter(({ name }) => name !== shrinking.name);
  const now = tools.clock.now();
  const times = others.map((zone) => ({
    name: zone.name,
    lastDownscale: laterOf(recorded.get(zone.name), lastDownscaleOf(shrinking.pending[zone.name], zone, now)),
    minTime: zone.scaling.minTime,
  }));
  const refusal = refuseByTime(times, now, tools.record.messages.unreadable);
  if (refusal) return refusal;
  const admitted = findAdmitted(shrinking.pending, others, now);
  if (admitted) return { reason: "OtherZoneNotReady", message: admitted.description };
  return await gatherGroup(others, source, call).then(
    ({ zones }) => refuseByHealth(zones),
    refuseOnError("ZonesUnknown", "an error occurred while checking whether StatefulSets have non-updated replicas"),
  );
}
