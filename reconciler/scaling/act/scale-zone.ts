/**
 * Scales one zone, with a write that takes effect only if the zone has not changed since the decision.
 *
 *   does it shrink without being forced? read again: hold
 *     -> does a webhook judge the write? write its replicas and the time of the downscale
 *     -> otherwise take the downscale Lease of its group -> read again: hold -> write -> release the Lease
 *   a write that takes pods away, a forced one too: would the API server store it? (a dry run) -> reserve the pods on the budgets of the zone: hold
 *     -> write --nothing written--> release them
 *
 * The Lease keeps webhooks from admitting a downscale of another zone between the last read and the write. A webhook
 * that judges the write takes the Lease itself, and reads the other zones under it. A zone that has to wait costs no
 * write.
 */
import type { ScaleZone } from "../../model/outcome.ts";
import { hasCode, isRefused, RolloutError, wroteNothing } from "../../../infra/errors.ts";
import type { Fence } from "../../../infra/kubernetes/lease.ts";
import { statefulSets } from "../../../infra/kubernetes/resources.ts";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import { ANNOTATIONS } from "../../model/annotations.ts";
import { hold, type Hold } from "../../model/decision.ts";
import { underDownscaleLease, gatherPending, nameLease } from "../../downscale/act/downscale-lease.ts";
import type { DisruptionGrant } from "../../budget/act/may-disrupt.ts";
import { decideShrink, isShrinking } from "../steady.ts";
import { type Scaler, gatherTimes } from "./gather-scaling.ts";
import { findAdmitted, type PendingDownscales } from "../../downscale/pending.ts";
import { gatherGroup, gatherGroupZones } from "../../snapshot/gather.ts";

/**
 * Undefined once the zone is scaled. Resolves with a hold if the zone has to wait or was refused: nothing was written
 * then. After any error that is thrown, the group must be gathered again (see `takeScalingStep`).
 */
export async function scaleZone(step: ScaleZone, scaler: Scaler): Promise<Hold | undefined> {
  const { zone, replicas, message } = step;
  const isChecked = isShrinking(step);
  try {
    const why = isChecked ? await whyNotShrink(step, scaler) : undefined;
    if (why) return why;
    if (isChecked && !zone.scaling.judgedByWebhook) return await shrinkUnderLease(step, scaler);
    return await writeReserved(step, scaler);
  } catch (error) {
    // After any other error the group has changed, or the write may have taken effect: the snapshot is outdated.
    if (!isRefused(error)) throw error;
    return {
      ...hold("ScaleRefused", `${message}, was not done: ${error.message}`, [zone]),
      dedupKey: `${zone.name} ${replicas} ${error.code}`,
    };
  }
}

/**
 * Shrinks the zone, or resolves with a hold, while no downscale of its group can be admitted. Throws as
 * `changeReplicas` and `whyNotShrink` do.
 */
async function shrinkUnderLease(step: ScaleZone, scaler: Scaler): Promise<Hold | undefined> {
  const { zone } = step;
  const done = await underDownscaleLease(zone, scaler, async ({ fence, pending, leaveToExpire }) => {
    const why = await whyNotShrink(step, scaler, pending);
    if (why) return why;
    return await writeReserved(step, { ...scaler, fence }, scaler.fence).catch((error: unknown) => {
      if (!wroteNothing(error)) leaveToExpire();
      throw error;
    });
  });
  if ("result" in done) return done.result;
  const message = `${zone.name} waits to shrink: the downscale Lease of its group is held for ${done.holder}`;
  return { ...hold("OtherZoneNotReady", message, [zone]), dedupKey: `${zone.name} after the Lease of ${done.holder}` };
}

/**
 * Writes the replicas, once the pods that it removes are reserved. Resolves with the hold of a budget; throws as
 * `changeReplicas` does. `releasing` bounds the release, as the time for the write may be over.
 */
async function writeReserved(
  step: ScaleZone,
  scaler: Scaler,
  releasing: Fence = scaler.fence,
): Promise<Hold | undefined> {
  const { zone, replicas } = step;
  const { fence } = scaler;
  if (replicas >= zone.replicas) return await changeReplicas(step, scaler);
  await rehearse(step, scaler);
  const forced = zone.scaling.forcedReplicas !== undefined;
  const grant = await scaler.mayDownscale(zone, { to: replicas, forced, call: fence.write() });
  if (grant?.action === "hold") return grant;
  await changeReplicas(step, scaler).catch(async (error: unknown) => {
    if (grant && wroteNothing(error)) await releaseGrant(grant, releasing);
    throw error;
  });
  return undefined;
}

/** A grant that cannot be released, as the Lease is lost, expires. */
async function releaseGrant(grant: DisruptionGrant, fence: Fence): Promise<void> {
  try {
    await grant.release(fence.write());
  } catch (error) {
    if (!hasCode(error, "LeaseLost")) throw error;
  }
}

/**
 * Throws `Invalid` if something would keep the zone from shrinking. Nothing is stored: a write that leaves the replicas
 * as they are would still store the time of the downscale, which keeps other zones from shrinking.
 */
async function rehearse(step: ScaleZone, scaler: Scaler): Promise<void> {
  const { zone } = step;
  const replicas = await writeReplicas(step, scaler, true);
  if (replicas >= zone.replicas)
    throw new RolloutError("Invalid", `${zone.name} would have ${replicas} replicas: something pins them`);
}

/**
 * Throws `Conflict` if the zone has changed since it was read or was given another number, `Invalid` if the write was
 * accepted and left the zone as it was, `LeaseLost`, or the error of the API server.
 */
async function changeReplicas(step: ScaleZone, scaler: Scaler): Promise<undefined> {
  const { zone, replicas } = step;
  const stored = await writeReplicas(step, scaler);
  if (stored === replicas) return;
  if (stored === zone.replicas)
    throw new RolloutError("Invalid", `${zone.name} still has ${stored} replicas: something pins them`);
  // The zone may lose pods by this write: all earlier reads are outdated.
  throw new RolloutError(
    "Conflict",
    `${zone.name} was given ${stored} replicas, not ${replicas}: something changes them`,
  );
}

/**
 * Writes the replicas and the time of a downscale in one write, so that neither is stored without the other. Resolves
 * with the replicas that the zone then has: others may change them as the write is admitted.
 */
async function writeReplicas(
  { zone: { name, namespace, resourceVersion }, replicas, recordAt }: ScaleZone,
  { cluster, fence }: Scaler,
  dryRun = false,
): Promise<number> {
  const annotations = recordAt === undefined ? {} : { [ANNOTATIONS.lastDownscale]: formatTimestamp(recordAt) };
  const body = { metadata: { resourceVersion, annotations }, spec: { replicas } };
  const patch = { name, namespace, type: "strategic", body, dryRun } as const;
  const { spec } = await cluster.change(statefulSets, patch, fence.write());
  return spec?.replicas ?? replicas;
}

/**
 * The last checks before a zone shrinks: slow pods or other groups may have delayed the write. Reads and checks all
 * conditions for a smaller zone again. `pending` are the pending downscales of its group if nobody else can add one now;
 * otherwise they are read last, as one may be added at any time. Throws `Conflict` if the zone or its leader has changed
 * since it was read, or the error of the API server.
 */
async function whyNotShrink(
  { zone, replicas }: ScaleZone,
  scaler: Scaler,
  pending?: PendingDownscales,
): Promise<Hold | undefined> {
  const zones = await gatherGroupZones(zone, scaler);
  const same = zones.find(({ uid, resourceVersion }) => uid === zone.uid && resourceVersion === zone.resourceVersion);
  if (!same) throw new RolloutError("Conflict", `${zone.name} has changed since it was read`);
  // The hold reports a tracker that cannot be read.
  const times = await gatherTimes(
    zones,
    same.scaling.minTime !== undefined || same.scaling.leader !== undefined,
    scaler,
  );
  const why = decideShrink({ zone: same, replicas }, times, await gatherGroup(zones, scaler));
  if (why === "outdated")
    throw new RolloutError("Conflict", `the leader of ${zone.name} has changed since it was read`);
  if (why) return why;
  const { namespace, group, name } = same;
  const admissions = pending ?? (await gatherPending(scaler.cluster, { namespace, name: nameLease(group, name) }));
  const others = zones.filter(({ uid }) => uid !== same.uid);
  const admitted = findAdmitted(admissions, others, scaler.clock.now());
  if (!admitted) return undefined;
  return {
    ...hold("OtherZoneNotReady", `${name} waits to shrink: ${admitted.description}`, [same, admitted.zone]),
    dedupKey: `${name} after ${admitted.zone.name}`,
  };
}
