/**
 * Scales one zone, with a write that takes effect only if the zone has not changed since the decision.
 *
 *   does it shrink without being forced? read everything again -> no hold: write its replicas and the time of the downscale
 */
import { isRefused, RolloutError } from "../../infra/errors.ts";
import { type StatefulSet, statefulSets } from "../../infra/kubernetes/resources.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import type { Actor } from "../../infra/kubernetes/actor.ts";
import { findAdmitted } from "../downscale/pending.ts";
import { gatherGroup, gatherGroupZones } from "../gather.ts";
import { ANNOTATIONS } from "../model/annotations.ts";
import { hold, type Hold } from "../model/decision.ts";
import type { Zone } from "../model/zone.ts";
import { gatherPending, nameLease } from "../pending-downscales/downscale-lease.ts";
import { decideFollower } from "../scaling/leader.ts";
import { minTimeOver } from "../scaling/min-time.ts";
import { othersSteady } from "../scaling/steady.ts";
import type { ScaleZone } from "../scaling/steps.ts";
import { gatherTimes } from "./gather-scaling.ts";
import type { Scaler } from "./scaler.ts";

/**
 * Undefined once the zone is scaled. Resolves with a hold if the zone has to wait or was refused: nothing was written then. After any error that is thrown,
 * the group must be gathered again (see `takeStep`).
 */
export async function scaleZone(step: ScaleZone, scaler: Scaler): Promise<Hold | undefined> {
  const { zone, replicas, message } = step;
  try {
    const why = replicas < zone.replicas && zone.scaling.forcedReplicas === undefined ? await whyNotShrink(step, scaler) : undefined;
    if (!why) await changeReplicas(step, scaler);
    return why;
  } catch (error) {
    // After any other error the group has changed, or the write may have taken effect: the snapshot is outdated.
    if (!isRefused(error)) throw error;
    return {
      ...hold("ScaleRefused", `${message}, was not done: ${error.message}`, [zone]),
      dedupKey: `${zone.name} ${replicas} ${error.code}`,
    };
  }
}

/** Reads and checks all conditions for a smaller zone again: slow pods or other groups may have delayed the write. */
async function whyNotShrink({ zone, replicas }: ScaleZone, scaler: Scaler): Promise<Hold | undefined> {
  const zones = await gatherGroupZones(zone, scaler);
  const same = zones.find(({ uid, resourceVersion }) => uid === zone.uid && resourceVersion === zone.resourceVersion);
  if (!same) throw new RolloutError("Conflict", `${zone.name} has changed since it was read`);
  // The hold reports a tracker that cannot be read.
  const times = await gatherTimes(zones, same.scaling.minTime !== undefined || same.scaling.leader !== undefined, scaler);
  if (same.scaling.leader === undefined) {
    const early = minTimeOver(same, times, "optional");
    if (early) return early;
  } else {
    const again = decideFollower(same, times);
    if (again?.action === "hold") return again;
    if (again?.replicas !== replicas) throw new RolloutError("Conflict", `the leader of ${zone.name} has changed since it was read`);
  }
  return othersSteady(same, await gatherGroup(zones, scaler)) ?? (await othersAdmitted(same, zones, scaler));
}

/** The hold while an admitted downscale of another zone may still be stored. Read last, as one may be admitted at any time; throws the error of the API server. */
async function othersAdmitted(zone: Zone, zones: readonly Zone[], { cluster, now }: Scaler): Promise<Hold | undefined> {
  const pending = await gatherPending(cluster, { namespace: zone.namespace, name: nameLease(zone.group, zone.name) });
  const others = zones.filter(({ uid }) => uid !== zone.uid);
  const admitted = findAdmitted(pending, others, now());
  if (!admitted) return undefined;
  const message = `${zone.name} waits to shrink: ${admitted.description}`;
  return { ...hold("OtherZoneNotReady", message, [zone, admitted.zone]), dedupKey: `${zone.name} after ${admitted.zone.name}` };
}

/**
 * Writes the replicas and the time of a downscale in one write, so that neither is stored without the other. Throws `Conflict` if the zone has changed
 * since it was read or was given another number, `Invalid` if it was accepted and left as it was, `LeaseLost`, or the error of the API server.
 */
async function changeReplicas({ zone, replicas, recordAt }: ScaleZone, actor: Actor): Promise<void> {
  const { cluster, fence, freshness } = actor;
  const { name, namespace, resourceVersion } = zone;
  const annotations = recordAt === undefined ? {} : { [ANNOTATIONS.lastDownscale]: formatTimestamp(recordAt) };
  const body = { metadata: { resourceVersion, annotations }, spec: { replicas } };
  const result = await cluster.change(statefulSets, { name, namespace, type: "strategic", body }, fence.write());
  freshness.noteWritten(statefulSets, result.metadata?.resourceVersion ?? "");
  const stored = result.spec?.replicas;
  if (stored === replicas) return;
  // The zone may lose pods by it: nothing that was read before still holds.
  if (stored !== zone.replicas)
    throw new RolloutError("Conflict", `${name} was given ${stored} replicas, not ${replicas}: something changes them`);
  if (recordAt !== undefined) await restoreLastDownscale(zone, result, actor);
  throw new RolloutError("Invalid", `it was accepted, but ${name} still has ${stored} replicas: something pins them`);
}

/** Removes the time of a downscale that did not happen: it would keep the other zones from shrinking. */
async function restoreLastDownscale(zone: Zone, { metadata }: StatefulSet, { cluster, fence, freshness }: Actor): Promise<void> {
  const { name, namespace, scaling } = zone;
  const { resourceVersion = "" } = metadata ?? {};
  const annotations = { [ANNOTATIONS.lastDownscale]: scaling.lastDownscale ?? null };
  const body = { metadata: { resourceVersion, annotations } };
  freshness.noteWritten(statefulSets, await cluster.patch(statefulSets, { name, namespace, type: "merge", body }, fence.write()));
}
