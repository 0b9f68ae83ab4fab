/**
 * Deletes a batch of pods of one zone, while the group is unchanged since the decision.
 *
 *   request all of them from the budget at once -> per pod: may the batch go on? -> delete it --ended early--> release the grants not used
 *
 * The completed deletions are reported however the batch ends; the next tick gathers again and decides about the rest.
 */
import type { DisruptionGrant, MayDisrupt } from "../reservations/may-disrupt.ts";
import type { Effect } from "../report/outcome.ts";
import type { Clock } from "../../infra/clock.ts";
import { hasCode, messageOf, RolloutError, wroteNothing } from "../../infra/errors.ts";
import { pods } from "../../infra/kubernetes/resources.ts";
import type { Actor } from "../../infra/kubernetes/actor.ts";
import { gatherGroup, gatherGroupZones } from "../gather.ts";
import type { Hold } from "../model/decision.ts";
import type { Pod } from "../model/pod.ts";
import { describeUnsteady, isSteady } from "../model/readiness.ts";
import type { Zone } from "../model/zone.ts";
import { whyStopBatch, zonesToList, type BatchView } from "../rollout/continue-batch.ts";
import type { DeletePods } from "../rollout/zone.ts";
import { patchStatus } from "./zone-status.ts";

export interface BatchActor extends Actor {
  readonly mayDisrupt: MayDisrupt;
  readonly clock: Pick<Clock, "monotonic">;
  /** A time before the pods were listed for the decision, by `clock.monotonic`. */
  readonly gatheredAt: number;
  /** Once it fires, no further pod is deleted. */
  readonly stop: AbortSignal;
}

/** Milliseconds from the request to the last deletion: a reservation lasts 2 minutes, and one that is up to 40 s old is granted again. */
const BATCH_MS = 30_000;

/** Milliseconds in which the gathered snapshot is recent enough for the first pod. */
const FRESH_MS = 1000;

/** A pod that may be deleted. */
interface Grant {
  readonly pod: Pod;
  /** Undefined if there is nothing to release. */
  readonly grant: DisruptionGrant | undefined;
}

/**
 * A pod that the budget denies does not block the other pods (§1.5.8). `judged` are the zones of the group. Throws only if no pod was deleted: `Conflict` if
 * the zone or the pod has changed since the decision, `Cancelled`, `LeaseLost`, or the error of the API server.
 */
export async function deletePods(decision: DeletePods, judged: readonly Zone[], actor: BatchActor): Promise<Effect> {
  const endAt = actor.clock.monotonic() + BATCH_MS;
  const { grants, denied } = await requestGrants(decision, actor);
  const unused = new Set(grants);
  const replaced: Pod[] = [];
  try {
    for (const grant of grants) {
      const isFirst = replaced.length === 0;
      if (isFirst) await patchStatus(decision.zone, actor);
      if (!isFirst || actor.clock.monotonic() - actor.gatheredAt > FRESH_MS)
        await confirmBatch({ zone: decision.zone, pod: grant.pod, judged }, actor);
      if (actor.stop.aborted) throw new RolloutError("Cancelled", "stopped");
      if (actor.clock.monotonic() >= endAt) throw new RolloutError("Cancelled", `the batch has taken ${BATCH_MS / 1000} s`);
      unused.delete(grant);
      await deletePod(grant.pod, actor).catch((error: unknown) => {
        // After any other error the pod may be terminating, and its reservation must remain.
        if (wroteNothing(error)) unused.add(grant);
        throw error;
      });
      replaced.push(grant.pod);
    }
    return { replaced, denied };
  } catch (error) {
    await releaseAll(unused, actor);
    if (replaced.length === 0) throw error;
    return { replaced, denied, stopped: messageOf(error) };
  }
}

/** Simultaneous requests share the reads of a budget. Rejects with the first error, after all grants are released. */
async function requestGrants({ zone, pods: chosen }: DeletePods, actor: BatchActor): Promise<{ grants: Grant[]; denied: Hold[] }> {
  const answers = await Promise.allSettled(chosen.map((pod) => actor.mayDisrupt(pod, zone, actor.fence.write())));
  const grants: Grant[] = [];
  const denied: Hold[] = [];
  for (const [i, answer] of answers.entries()) {
    const pod = chosen[i];
    if (!pod || answer.status === "rejected") continue;
    if (answer.value?.action === "hold") denied.push(answer.value);
    else grants.push({ pod, grant: answer.value });
  }
  const failed = answers.find((answer) => answer.status === "rejected");
  if (!failed) return { grants, denied };
  await releaseAll(grants, actor);
  throw failed.reason;
}

/** Throws `Conflict` if the batch may not continue with this pod, or the error of the API server. */
async function confirmBatch(next: Omit<BatchView, "now">, actor: Actor): Promise<void> {
  const view = { ...next, now: await gatherGroupZones(next.zone, actor) };
  const why = whyStopBatch(view);
  if (why) throw new RolloutError("Conflict", why);
  const { zones } = await gatherGroup(zonesToList(view), actor);
  const unsteady = zones.find((other) => !isSteady(other));
  if (unsteady) throw new RolloutError("Conflict", describeUnsteady(unsteady));
}

/** Deletes the judged pod, if it has not changed since. */
async function deletePod(pod: Pod, { cluster, fence, freshness }: BatchActor): Promise<void> {
  const { namespace, name, uid, resourceVersion } = pod;
  const version = await cluster.remove(pods, { namespace, name, preconditions: { uid, resourceVersion } }, fence.write());
  freshness.noteWritten(pods, version);
}

/** Releases grants that were not used; once the Lease is lost, they are left to expire. */
async function releaseAll(grants: Iterable<Grant>, { fence }: BatchActor): Promise<void> {
  try {
    for (const { grant } of grants) await grant?.release(fence.write());
  } catch (error) {
    if (!hasCode(error, "LeaseLost")) throw error;
  }
}
