/**
 * Scales one zone, with a write that takes effect only if the zone has not changed since the decision.
 *
 *   does it shrink without being forced? read again: hold
 *     -> does a webhook judge the write? write its replicas and the time of the downscale
 *     -> otherwise take the downscale Lease of its group -> read again: hold -> write -> release the Lease
 *   a write that takes pods away, a forced one too: reserve them on the budgets of the zone first: hold -> write --nothing written--> release them
 *
 * The Lease keeps webhooks from admitting a downscale of another zone between the last read and the write. A webhook
 * that judges the write takes the Lease itself, and reads the other zones under it. A zone that has to wait costs no
 * write.
 */
import type { ScaleZone } from "../../model/outcome.ts";
import { absent, hasCode, isRefused, RolloutError, wroteNothing } from "../../../infra/errors.ts";
import type { Fence } from "../../../infra/kubernetes/lease.ts";
import { retryOnConflict } from "../../../infra/kubernetes/retry-on-conflict.ts";
import { type StatefulSet, statefulSets } from "../../../infra/kubernetes/resources.ts";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import { ANNOTATIONS } from "../../model/annotations.ts";
import { hold, type Hold } from "../../model/decision.ts";
import type { Zone } from "../../model/zone.ts";
import { underDownscaleLease, gatherPending, nameLease } from "../../downscale/act/downscale-lease.ts";
import type { DisruptionGrant } from "../../budget/act/may-disrupt.ts";
import { decideShrink, isShrinking } from "../steady.ts";
import { type Scaler, gatherTimes } from "./gather-scaling.ts";
import { findAdmitted, type PendingDownscales } from "../../downscale/pending.ts";
import { gatherGroup, gatherGroupZones } from "../../snapshot/gather.ts";

/** Milliseconds for which a zone is not written again that has kept its replicas. */
const PINNED_MS = 30_000;

/**
 * Undefined once the zone is scaled. Resolves with a hold if the zone has to wait or was refused: nothing was written
 * then. After any error that is thrown, the group must be gathered again (see `takeScalingStep`).
 */
export async function scaleZone(step: ScaleZone, scaler: Scaler): Promise<Hold | undefined> {
  const { zone, replicas, message } = step;
  const isChecked = isShrinking(step);
  try {
    if ((scaler.pinnedUntil.get(pinKey(step)) ?? -Infinity) > scaler.clock.monotonic()) throw pinnedError(zone);
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
  const forced = zone.scaling.forcedReplicas !== undefined;
  const grant =
    replicas < zone.replicas
      ? await scaler.mayDownscale(zone, { to: replicas, forced, call: fence.write() })
      : undefined;
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
 * Writes the replicas and the time of a downscale in one write, so that neither is stored without the other. Throws
 * `Conflict` if the zone has changed since it was read or was given another number, `Invalid` if the write was
 * accepted and left the zone as it was, `LeaseLost`, or the error of the API server.
 */
async function changeReplicas(step: ScaleZone, scaler: Scaler): Promise<void> {
  const { zone, replicas, recordAt } = step;
  const { cluster, fence } = scaler;
  const { name, namespace, resourceVersion } = zone;
  const annotations = recordAt === undefined ? {} : { [ANNOTATIONS.lastDownscale]: formatTimestamp(recordAt) };
  const body = { metadata: { resourceVersion, annotations }, spec: { replicas } };
  const result = await cluster.change(statefulSets, { name, namespace, type: "strategic", body }, fence.write());
  if (result.spec?.replicas !== replicas) await refuseChanged(step, result, scaler);
}

/** Others have given the zone another number as its write was admitted: rejects as `changeReplicas` does. */
async function refuseChanged(step: ScaleZone, written: StatefulSet, scaler: Scaler): Promise<never> {
  const { zone, replicas, recordAt } = step;
  const stored = written.spec?.replicas;
  const isPinned = stored === zone.replicas;
  // Both writes of a pinned zone change it, and so start the next tick at once.
  if (isPinned) scaler.pinnedUntil.set(pinKey(step), scaler.clock.monotonic() + PINNED_MS);
  const isSmaller = stored !== undefined && stored < zone.replicas;
  if (recordAt !== undefined && !isSmaller) await restoreLastDownscale(zone, written, scaler);
  if (isPinned) throw pinnedError(zone);
  // The zone may lose pods by this write: all earlier reads are outdated.
  const message = `${zone.name} was given ${stored} replicas, not ${replicas}: something changes them`;
  throw new RolloutError("Conflict", message);
}

const pinKey = ({ zone: { uid }, replicas }: ScaleZone): string => `${uid} ${replicas}`;
const pinnedError = ({ name, replicas }: Zone): RolloutError =>
  new RolloutError("Invalid", `it was accepted, but ${name} still has ${replicas} replicas: something pins them`);

/**
 * Removes the time of a downscale that did not happen: it would keep the other zones from shrinking. Whoever has
 * written the zone meanwhile has kept that time; then throws `Conflict`, as the group has changed. A zone that was
 * scaled since, or has another time, is left alone.
 */
async function restoreLastDownscale(zone: Zone, written: StatefulSet, scaler: Scaler): Promise<void> {
  const { cluster, clock, fence } = scaler;
  const { name, namespace, scaling, uid } = zone;
  const annotations = { [ANNOTATIONS.lastDownscale]: scaling.lastDownscale ?? null };
  const timeOf = ({ metadata }: StatefulSet): string | undefined => metadata?.annotations?.[ANNOTATIONS.lastDownscale];
  const restore = async ({ metadata }: StatefulSet): Promise<void> => {
    const body = { metadata: { resourceVersion: metadata?.resourceVersion ?? "", annotations } };
    await cluster.patch(statefulSets, { name, namespace, type: "merge", body }, fence.write());
  };
  try {
    await restore(written);
  } catch (error) {
    if (!hasCode(error, "Conflict")) throw error;
    await retryOnConflict(
      async () => {
        const set = await cluster.get(statefulSets, { name, namespace }, fence.write()).catch(absent);
        if (set?.metadata?.uid !== uid || set.spec?.replicas !== written.spec?.replicas) return;
        if (timeOf(set) === timeOf(written)) await restore(set);
      },
      { clock, call: fence.write() },
    );
    throw error;
  }
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
