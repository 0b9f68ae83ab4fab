/**
 * Deletes a batch of pods of one zone, as long as everything stays as it was when the batch was decided.
 *
 *   ask the budget for all of them at once -> per pod: may the batch go on? -> delete it --ended early--> give back the leaves not used
 *
 * What has been done is reported however the batch ends; the next tick gathers anew and decides about the rest.
 */
import { hasCode, isRefused, messageOf, RolloutError } from "../infra/errors.ts";
import { pods } from "../infra/resources.ts";
import type { Actor, Effect, Permit } from "./act.ts";
import { gatherGroup, gatherGroupZones, noteVersion } from "./gather.ts";
import type { Hold } from "./model/decision.ts";
import type { Pod } from "./model/pod.ts";
import { describeUnavailable, isWell } from "./model/readiness.ts";
import type { Zone } from "./model/zone.ts";
import { whyStopBatch, zonesToLookAt } from "./rollout/go-on.ts";
import type { DeletePods } from "./rollout/zone.ts";
import { patchStatus } from "./zone-status.ts";

export interface BatchActor extends Actor {
  readonly monotonic: () => number;
  /** Once it fires, no further pod is deleted. */
  readonly stop: AbortSignal;
}

/** From asking the budget to the last deletion: a leave lasts 2 minutes, and may be 40 s old when it is given again. */
const BATCH_MS = 30_000;

interface Leave {
  readonly pod: Pod;
  /** Undefined if there is nothing to give back. */
  readonly permit: Permit | undefined;
}

/**
 * A pod that the budget denies does not keep the others from their turn [1.5.8]. `judged` are the zones of the group. Throws what kept the first
 * pod from being deleted: `Conflict` if the zone or the pod has changed since it was judged, `Cancelled`, `LeaseLost`, or what the cluster says.
 */
export async function deletePods(decision: DeletePods, judged: readonly Zone[], actor: BatchActor): Promise<Effect> {
  const endAt = actor.monotonic() + BATCH_MS;
  const { leaves, denied } = await askForLeave(decision, actor);
  const unused = new Set(leaves);
  const replaced: Pod[] = [];
  try {
    for (const leave of leaves) {
      if (actor.stop.aborted) throw new RolloutError("Cancelled", "told to stop");
      if (actor.monotonic() >= endAt) throw new RolloutError("Cancelled", `the batch has taken ${BATCH_MS / 1000} s`);
      if (replaced.length === 0) await patchStatus(decision.zone, actor);
      else await confirmBatch(decision.zone, leave.pod, judged, actor);
      unused.delete(leave);
      await deletePod(leave.pod, actor).catch((error: unknown) => {
        // The pod is there as before. After any other error it may be on its way out, and its leave lasts.
        if (isRefused(error) || hasCode(error, "Conflict")) unused.add(leave);
        throw error;
      });
      replaced.push(leave.pod);
    }
    return { replaced, denied };
  } catch (error) {
    await giveBack(unused, actor);
    if (replaced.length === 0) throw error;
    return { replaced, denied, stopped: messageOf(error) };
  }
}

/** Asked in the same moment, the pods of a batch share what a budget costs. Rejects with the first thing that went wrong, all leaves given back. */
async function askForLeave({ zone, pods: chosen }: DeletePods, actor: BatchActor): Promise<{ leaves: Leave[]; denied: Hold[] }> {
  const answers = await Promise.allSettled(chosen.map((pod) => actor.mayDisrupt(pod, zone, actor.fence.write())));
  const leaves: Leave[] = [];
  const denied: Hold[] = [];
  for (const [i, answer] of answers.entries()) {
    const pod = chosen[i];
    if (!pod || answer.status === "rejected") continue;
    if (answer.value?.action === "hold") denied.push(answer.value);
    else leaves.push({ pod, permit: answer.value });
  }
  const failed = answers.find((answer) => answer.status === "rejected");
  if (!failed) return { leaves, denied };
  await giveBack(leaves, actor);
  throw failed.reason;
}

/** Throws `Conflict` if the batch may not go on with this pod, or what the cluster says. */
async function confirmBatch(zone: Zone, pod: Pod, judged: readonly Zone[], { cluster, freshness }: BatchActor): Promise<void> {
  const view = { judged, zone, pod, now: await gatherGroupZones(cluster, zone, freshness) };
  const why = whyStopBatch(view);
  if (why) throw new RolloutError("Conflict", why);
  const { zones } = await gatherGroup(cluster, zonesToLookAt(view), freshness);
  const unwell = zones.find((other) => !isWell(other));
  if (unwell) throw new RolloutError("Conflict", describeUnavailable(unwell));
}

/** Only the pod that was judged, as it was judged. */
async function deletePod(pod: Pod, { cluster, fence, freshness }: BatchActor): Promise<void> {
  const version = await cluster.remove(pods, pod, { uid: pod.uid, resourceVersion: pod.resourceVersion }, fence.write());
  noteVersion(freshness, pods, version);
}

/** Gives back leaves that were not used; once the Lease is lost, they are left to their expiry. */
async function giveBack(leaves: Iterable<Leave>, { fence }: BatchActor): Promise<void> {
  try {
    for (const { permit } of leaves) await permit?.withdraw(fence.write());
  } catch (error) {
    if (!hasCode(error, "LeaseLost")) throw error;
  }
}
