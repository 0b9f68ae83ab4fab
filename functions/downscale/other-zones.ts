/** Gathers the other zones of a group and decides whether they forbid a downscale (§4.7). */
import type { Clock } from "../../infra/clock.ts";
import { ownValue } from "../../infra/json.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { type DownscaleRefusal, refuseByHealth } from "../../reconciler/downscale/decide-admission.ts";
import { findAdmitted, lastDownscaleOf, laterOf, type PendingDownscales } from "../../reconciler/downscale/pending.ts";
import { gatherGroup, gatherGroupZones } from "../../reconciler/snapshot/gather.ts";
import { findExcess } from "../../reconciler/model/refused-group.ts";
import type { GroupSnapshot, Zone } from "../../reconciler/model/zone.ts";
import { refuseByTime, timedOrphans } from "../../reconciler/scaling/min-time.ts";
import { losesNothing } from "../../reconciler/scaling/steady.ts";
import type { DownscaleRecord } from "./downscale-record.ts";
import type { RequestContext } from "../http/webhook.ts";

interface ShrinkingZone {
  readonly zone: Zone;
  readonly replicas: number;
  /** The pending downscales that the group's Lease recorded when it was taken. */
  readonly pending: PendingDownscales;
}

interface Tools {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly record: DownscaleRecord;
}

/**
 * The refusal of a downscale that must wait for another zone, or that cannot be decided; undefined if it may proceed.
 */
export async function refuseForOtherZones(
  shrinking: ShrinkingZone,
  tools: Tools,
  { signal, log }: RequestContext,
): Promise<DownscaleRefusal | undefined> {
  const { zone: own } = shrinking;
  const call = { signal };
  const source = { cluster: tools.cluster };
  const refuseOnError = (reason: DownscaleRefusal["reason"], message: string) => (error: unknown) => {
    log.warn(message, { namespace: own.namespace, group: own.group, zone: own.name, error });
    return { reason, message };
  };
  const group = await gatherGroupZones(own, source, call).catch(
    refuseOnError("GroupUnknown", "finding other statefulsets failed."),
  );
  if ("reason" in group) return group;
  const excess = findExcess(own, group);
  if (excess) return { reason: excess.reason, message: `${excess.message}.` };
  const recorded = await tools.record
    .load(own.namespace, group, call)
    .catch(refuseOnError("DownscalesUnknown", "loading zones failed."));
  if ("reason" in recorded) return recorded;
  const others = group.filter(({ name }) => name !== own.name);
  const now = tools.clock.now();
  const refuseEarly = (zones: readonly Zone[]): DownscaleRefusal | undefined => {
    const times = zones.map((zone) => {
      const { name, scaling, orphaned } = zone;
      const pending = lastDownscaleOf(ownValue(shrinking.pending, name), zone, now);
      return {
        name,
        lastDownscale: laterOf(laterOf(scaling.lastDownscale, recorded.get(name)), pending),
        // Its own minimum time is gone with its StatefulSet; zones of a group have the same one as a rule.
        minTime: orphaned === "gone" ? own.scaling.minTime : scaling.minTime,
      };
    });
    return refuseByTime(times, now, tools.record.messages.unreadable);
  };
  const refusal = refuseEarly(others);
  if (refusal) return refusal;
  const admitted = findAdmitted(shrinking.pending, others, now);
  if (admitted) return { reason: "OtherZoneNotReady", message: admitted.description };
  return await gatherGroup(group, source, call).then(
    (found) => refuseEarly(timedOrphans(found)) ?? refuseUnlessIdle(found, shrinking, now),
    refuseOnError("ZonesUnknown", "an error occurred while checking whether StatefulSets have non-updated replicas"),
  );
}

/** A downscale that removes only pods that serve nothing need not wait for other zones. */
function refuseUnlessIdle(
  group: GroupSnapshot,
  { zone, replicas }: ShrinkingZone,
  now: number,
): DownscaleRefusal | undefined {
  const own = group.zones.find(({ uid }) => uid === zone.uid);
  if (own && losesNothing(own, replicas, now)) return undefined;
  return refuseByHealth(group, { zone, size: replicas, now });
}
