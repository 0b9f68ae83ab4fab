/**
 * Carries out decisions about a rollout, with writes that take effect only if the judged objects have not changed. Pods
 * of one zone are deleted in batches, while the group is unchanged since the decision:
 *
 *   request all of them from the budget at once -> may a webhook admit a downscale of another zone? do the rest under the group's downscale Lease
 *     -> per pod: may the batch continue? -> delete it --ended early--> release the grants not used
 *
 * The completed deletions are reported however the batch ends; the next tick gathers again and decides about the rest.
 */
import type { DeletePods, Effect, FinishZone } from "../../model/outcome.ts";
import type { DisruptionContext, DisruptionGrant } from "../../budget/act/may-disrupt.ts";
import { hasCode, messageOf, RolloutError, wroteNothing } from "../../../infra/errors.ts";
import { pods, statefulSets } from "../../../infra/kubernetes/resources.ts";
import type { Actor, Context } from "../../../infra/kubernetes/context.ts";
import { findAdmitted } from "../../downscale/pending.ts";
import { gatherGroup, gatherGroupZones, gatherZonePods } from "../../snapshot/gather.ts";
import { blameUnavailable } from "../../model/culprit.ts";
import { hold, type Hold } from "../../model/decision.ts";
import type { Pod } from "../../model/pod.ts";
import { describeUnsteady, isSteady } from "../../model/readiness.ts";
import type { GatheredGroup, Zone, ZoneWithPods } from "../../model/zone.ts";
import { type HeldLease, underDownscaleLease } from "../../downscale/act/downscale-lease.ts";
import { whyLessRoom, whyStopBatch, zonesToList, type BatchView } from "../continue-batch.ts";

/**
 * Records that the zone is updated, and returns it as it is then. Throws `Conflict` if it has changed since it was
 * judged, `LeaseLost`, or the error of the API server.
 */
export async function finishZone({ zone }: FinishZone, actor: Actor): Promise<Zone> {
  const currentRevision = zone.status.updateRevision;
  const resourceVersion = await patchZoneStatus(zone, actor, { currentRevision });
  return { ...zone, resourceVersion, status: { ...zone.status, currentRevision } };
}

export interface Judged {
  readonly zones: readonly ZoneWithPods[];
  readonly orphans?: GatheredGroup["orphans"];
  /** A time before the pods were listed, by `clock.monotonic`. */
  readonly gatheredAt: number;
}

/**
 * Milliseconds from the request to the last deletion: a reservation lasts 2 minutes, and one that is up to 40 s old is
 * granted again.
 */
const BATCH_MS = 30_000;

/** Milliseconds for which the gathered facts are recent enough for the first pod. */
const FRESH_MS = 1000;

/** True if the gathered facts are too old to delete a pod without another read. */
export function isOutdated({ gatheredAt }: Pick<Judged, "gatheredAt">, { clock }: Pick<Context, "clock">): boolean {
  return clock.monotonic() - gatheredAt > FRESH_MS;
}

interface Batch extends Pick<Judged, "gatheredAt"> {
  readonly zone: ZoneWithPods;
  /** None of its pods serves. */
  readonly servesNothing: boolean;
  readonly judged: readonly Zone[];
  /** The group has pods that are of none of its zones. */
  readonly hasOrphans: boolean;
  /** By `clock.monotonic`. */
  readonly endAt: number;
  /** Grants of pods that were not deleted. */
  readonly unused: Set<Grant>;
  readonly replaced: Pod[];
}

/**
 * A pod that the budget denies does not block the other pods (§1.5.8). Throws only if no pod was deleted: `Conflict` if
 * the zone or the pod has changed since the decision, `Cancelled`, `LeaseLost`, or the error of the API server.
 */
export async function deletePods(
  decision: DeletePods,
  { zones: judged, orphans = [], gatheredAt }: Judged,
  actor: DisruptionContext,
): Promise<Effect> {
  const endAt = actor.clock.monotonic() + BATCH_MS;
  const { grants, denied } = await requestGrants(decision, judged, actor);
  const { zone, serveNothing: servesNothing = false } = decision;
  const hasOrphans = orphans.length > 0;
  const batch: Batch = {
    zone,
    servesNothing,
    judged,
    hasOrphans,
    gatheredAt,
    endAt,
    unused: new Set(grants),
    replaced: [],
  };
  const { replaced } = batch;
  try {
    const why = mayAnotherShrink(batch) ? await deleteUnderLease(batch, actor) : await deleteInTurn(batch, actor);
    return { replaced, denied: why ? [...denied, why] : denied };
  } catch (error) {
    if (replaced.length === 0) throw error;
    return { replaced, denied, stopped: messageOf(error) };
  } finally {
    await releaseAll(batch.unused, actor);
  }
}

/** True if there is something to delete while a webhook may admit a downscale of another zone. */
function mayAnotherShrink({ zone, judged, unused }: Batch): boolean {
  return unused.size > 0 && judged.some(({ uid, scaling }) => uid !== zone.uid && scaling.judgedByWebhook);
}

/**
 * Resolves with a hold, and deletes nothing, if another downscale is judged now, or was admitted and may still be
 * stored. Only the reconciler removes admitted downscales from the Lease, before it lists the zones, so the zones of
 * the decision suffice.
 */
async function deleteUnderLease(batch: Batch, actor: DisruptionContext): Promise<Hold | undefined> {
  const { zone, judged } = batch;
  const done = await underDownscaleLease(zone, actor, async ({ fence, pending, leaveToExpire }) => {
    const others = judged.filter(({ uid }) => uid !== zone.uid);
    const admitted = findAdmitted(pending, others, actor.clock.now());
    if (admitted) return waitForDownscale(zone, admitted.description, admitted.zone.name);
    return await deleteInTurn(batch, { ...actor, fence }, leaveToExpire);
  });
  if ("result" in done) return done.result;
  return waitForDownscale(
    zone,
    `the downscale Lease of its group is held for ${done.holder}`,
    `the Lease of ${done.holder}`,
  );
}

function waitForDownscale(zone: Zone, why: string, what: string): Hold {
  return { ...hold("OtherZoneNotReady", `${zone.name} waits: ${why}`, [zone]), dedupKey: `${zone.name} after ${what}` };
}

/**
 * Deletes the pods one after the other. `onUnknown` is called for a deletion without an answer. Throws the error that
 * ends the batch early.
 */
async function deleteInTurn(
  batch: Batch,
  actor: DisruptionContext,
  onUnknown?: HeldLease["leaveToExpire"],
): Promise<undefined> {
  const { endAt, unused, replaced, gatheredAt, ...view } = batch;
  for (const grant of unused) {
    const next = { ...view, pod: grant.pod };
    const isFirst = replaced.length === 0;
    if (isFirst) await confirmZone(next, actor);
    if (!isFirst || isOutdated({ gatheredAt }, actor)) await confirmBatch(next, actor);
    if (actor.stop.aborted) throw new RolloutError("Cancelled", "stopped");
    if (actor.clock.monotonic() >= endAt)
      throw new RolloutError("Cancelled", `the batch has taken ${BATCH_MS / 1000} s`);
    unused.delete(grant);
    await deletePod(grant.pod, actor).catch((error: unknown) => {
      // After any other error the pod may be terminating, and its reservation must remain.
      if (wroteNothing(error)) unused.add(grant);
      else onUnknown?.();
      throw error;
    });
    replaced.push(grant.pod);
  }
}

/** A pod of the batch that is about to be deleted. */
interface NextPod extends Omit<BatchView, "now" | "at">, Pick<Batch, "hasOrphans"> {}

/** Attempts to confirm a zone: its status may change a few times in a row. */
const CONFIRMATIONS = 3;

/**
 * Confirms by a write without content that the zone is as it was read last. If it is not, the batch is judged by the
 * group and the zone's pods as they are now, and that is confirmed: while pods come and go, each of them changes the
 * status of their zone.
 * Throws `Conflict` if the batch may not begin, or the error of the API server.
 */
async function confirmZone(next: NextPod, actor: Actor & Pick<Context, "clock">): Promise<void> {
  let zone: Zone = next.zone;
  for (let attempt = 1; ; attempt++) {
    try {
      await patchZoneStatus(zone, actor);
      return;
    } catch (error) {
      if (!hasCode(error, "Conflict") || attempt === CONFIRMATIONS) throw error;
    }
    zone = await confirmBatch(next, actor);
    const [current] = await gatherZonePods([zone], actor);
    const why = current && whyLessRoom(next.zone, current);
    if (why) throw new RolloutError("Conflict", why);
  }
}

/**
 * Returns the zone as it is now. Throws `Conflict` if the batch may not continue with this pod, or the error of the API
 * server. No status tells of the pods that are of no zone: a group that has some is read whole.
 */
async function confirmBatch({ hasOrphans, ...next }: NextPod, actor: Actor & Pick<Context, "clock">): Promise<Zone> {
  const view = { ...next, now: await gatherGroupZones(next.zone, actor), at: actor.clock.now() };
  const why = whyStopBatch(view);
  if (why) throw new RolloutError("Conflict", why);
  const zones = await gatherZonePods(zonesToList(view), actor);
  const { orphans = [] } = hasOrphans && !view.servesNothing ? await gatherGroup(view.now, actor) : {};
  const unsteady = [...zones, ...orphans].find((other) => !isSteady(other));
  if (unsteady) throw new RolloutError("Conflict", describeUnsteady(unsteady));
  return view.now.find(({ uid }) => uid === next.zone.uid) ?? next.zone;
}

/** Deletes the judged pod, if it has not changed since. */
async function deletePod(pod: Pod, { cluster, fence }: Actor): Promise<void> {
  const { namespace, name, uid, resourceVersion } = pod;
  await cluster.remove(pods, { namespace, name, preconditions: { uid, resourceVersion } }, fence.write());
}

interface Grant {
  readonly pod: Pod;
  /** Undefined if there is nothing to release. */
  readonly grant: DisruptionGrant | undefined;
}

/** Simultaneous requests share the reads of a budget. Rejects with the first error, after all grants are released. */
async function requestGrants(
  { zone, pods: chosen }: DeletePods,
  zones: readonly ZoneWithPods[],
  actor: Pick<DisruptionContext, "fence" | "mayDisrupt">,
): Promise<{ grants: Grant[]; denied: Hold[] }> {
  const answers = await Promise.allSettled(chosen.map((pod) => actor.mayDisrupt(pod, zone, actor.fence.write())));
  const grants: Grant[] = [];
  const denied: Hold[] = [];
  for (const [i, answer] of answers.entries()) {
    const pod = chosen[i];
    if (!pod || answer.status === "rejected") continue;
    if (answer.value?.action === "hold") denied.push(blameUnavailable(answer.value, pod, { zone, zones }));
    else grants.push({ pod, grant: answer.value });
  }
  const failed = answers.find((answer) => answer.status === "rejected");
  if (!failed) return { grants, denied };
  await releaseAll(grants, actor);
  throw failed.reason;
}

/** Releases grants that were not used; once the Lease is lost, they are left to expire. */
async function releaseAll(grants: Iterable<Grant>, { fence }: Pick<Context, "fence">): Promise<void> {
  try {
    for (const { grant } of grants) await grant?.release(fence.write());
  } catch (error) {
    if (!hasCode(error, "LeaseLost")) throw error;
  }
}

/**
 * Patches the status of the zone, and returns its resourceVersion; throws `Conflict` if the zone has changed or was
 * recreated since it was read. Without `status` it only checks that: it detects a zone that was paused, scaled or given
 * another template meanwhile. Status patches call no admission webhooks. The patch has no UID: a wrong UID would be
 * answered with 422 before the versions are compared.
 */
export async function patchZoneStatus(zone: Zone, { cluster, fence }: Actor, status?: object): Promise<string> {
  const { name, namespace, resourceVersion } = zone;
  const body = { metadata: { resourceVersion }, ...(status && { status }) };
  const patch = { name, namespace, subresource: "status", type: "merge", body } as const;
  return await cluster.patch(statefulSets, patch, fence.write());
}
