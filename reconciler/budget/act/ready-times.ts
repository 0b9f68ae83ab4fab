/**
 * Writes the ready times of pods (§5.7), if a disruption budget needs them.
 *
 * The tick writes those of a group when it has read the group's pods. A budget may also select StatefulSets in no
 * rollout group: without ready times, a budget with a delay would never allow an eviction there. Every 30 s such a
 * budget costs a list of its StatefulSets, and a list of its pods if some of the StatefulSets are in no group.
 */
import { firstOfSignals, type Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { hasCode, isSuperseded } from "../../../infra/errors.ts";
import type { Fence } from "../../../infra/kubernetes/lease.ts";
import type { Log } from "../../../infra/log.ts";
import { pods, statefulSets } from "../../../infra/kubernetes/resources.ts";
import { visitEach } from "../../../infra/slots.ts";
import { changeReadyTimes, type ReadyTimeChange } from "../ready-time.ts";
import type { Budget } from "../zpdb.ts";
import { createFreshness } from "../../../infra/kubernetes/freshness.ts";
import { gatherUnderBudget } from "./gather-budget.ts";
import { readAll } from "../../snapshot/gather.ts";
import { ANNOTATIONS } from "../../model/annotations.ts";
import type { Pod } from "../../model/pod.ts";
import { readZone, selectorText } from "../../model/zone.ts";

export interface ReadyTimeWriter {
  readonly cluster: Cluster;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
  /** Milliseconds for the write of one pod's ready time. */
  readonly patchTimeoutMs: number;
}

export interface WriteBounds {
  readonly fence: Fence;
  /** Once it fires, no further pod is patched. */
  readonly signal?: AbortSignal;
}

/** A budget with a delay, valid or not: its pattern does not matter here. */
export type DelayedBudget = Pick<Budget, "namespace" | "name" | "matchLabels">;

/** A budget, and the UIDs of the StatefulSets in groups. */
export interface BudgetOutsideGroups {
  readonly budget: DelayedBudget;
  readonly grouped: ReadonlySet<string>;
}

const PATCHES_AT_A_TIME = 8;
/** Milliseconds for a list, or a page of it. */
const CALL_MS = 5000;

/**
 * Brings the annotations of these pods up to date; false if some could not be written. Stops once `signal` fires or a
 * write fails: the pods are read again soon. Throws `LeaseLost`.
 */
export async function writeReadyTimes(
  members: readonly Pod[],
  { cluster, clock, log, patchTimeoutMs }: ReadyTimeWriter,
  { fence, signal = new AbortController().signal }: WriteBounds,
): Promise<boolean> {
  let complete = true;
  const trouble = new AbortController();
  await visitEach(
    changeReadyTimes(members, clock.now()),
    { atOnce: PATCHES_AT_A_TIME, signal: firstOfSignals(signal, trouble.signal) },
    async ({ pod: { namespace, name, uid }, value }: ReadyTimeChange) => {
      const body = { metadata: { uid, annotations: { [ANNOTATIONS.readyTime]: value } } };
      const call = fence.write();
      const deadlineMs = Math.min(patchTimeoutMs, call.deadlineMs ?? patchTimeoutMs);
      await cluster
        .patch(pods, { namespace, name, type: "merge", body }, { ...call, deadlineMs })
        .catch((error: unknown) => {
          complete = false;
          // The API server answers a patch of a recreated pod with Invalid, not Conflict: the UID is immutable.
          if (isSuperseded(error) || hasCode(error, "Invalid")) return;
          trouble.abort();
          log.warn("the ready time of a pod could not be written", { namespace, pod: name, error });
        });
    },
  );
  return complete;
}

/** Writes the ready times of pods whose StatefulSet is selected by the budget and is in no group. Never rejects. */
export async function writeReadyTimesOutsideGroups(
  { budget, grouped }: BudgetOutsideGroups,
  writer: ReadyTimeWriter,
  { fence, signal }: Required<WriteBounds>,
): Promise<void> {
  const { namespace, name, matchLabels } = budget;
  const call = { deadlineMs: CALL_MS, signal };
  try {
    const query = { namespace, labelSelector: selectorText({ matchLabels }) };
    const freshness = createFreshness(writer.clock, writer.log);
    const sets = await readAll(
      { resource: statefulSets, query, read: readZone },
      { cluster: writer.cluster, freshness },
      call,
    );
    if (sets.items.every(({ uid }) => grouped.has(uid))) return;
    const { zones } = await gatherUnderBudget(budget, { cluster: writer.cluster, freshness }, call);
    const members = zones.filter(({ uid }) => !grouped.has(uid)).flatMap((zone) => zone.pods);
    await writeReadyTimes(members, writer, { fence, signal });
  } catch (error) {
    if (!hasCode(error, "Cancelled", "LeaseLost"))
      writer.log.warn("the ready times under a disruption budget could not be written", {
        namespace,
        budget: name,
        error,
      });
  }
}
