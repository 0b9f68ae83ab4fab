/**
 * Writes since when pods are ready (§5.7), where a disruption budget asks for it.
 *
 * Groups have theirs written with a look at their pods that is due anyhow. A budget may select StatefulSets in no rollout group as well: with a
 * delay it would never allow an eviction there. Every 30 s such a budget costs a list of its StatefulSets, and one of its pods besides where some
 * are in no group.
 */
import { firstOfSignals, type Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { hasCode, isSuperseded } from "../../infra/errors.ts";
import type { Fence } from "../../infra/kubernetes/lease.ts";
import type { Log } from "../../infra/log.ts";
import { pods, statefulSets } from "../../infra/kubernetes/resources.ts";
import { visitEach } from "../../infra/slots.ts";
import { changeReadyTimes, type ReadyTimeChange } from "../budget/ready-time.ts";
import type { Budget } from "../budget/zpdb.ts";
import { createFreshness } from "../../infra/kubernetes/freshness.ts";
import { gatherUnderBudget } from "../reservations/gather-budget.ts";
import { readAll } from "../gather.ts";
import { ANNOTATIONS } from "../model/annotations.ts";
import type { Pod } from "../model/pod.ts";
import { readZone, selectorText } from "../model/zone.ts";

export interface ReadyTimeWriter {
  readonly cluster: Cluster;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
  /** Milliseconds that writing the ready time of one pod may take. */
  readonly patchTimeoutMs: number;
}

export interface WriteBounds {
  readonly fence: Fence;
  /** Once it fires, no further pod is written to. */
  readonly signal?: AbortSignal;
}

/** A budget, and the UIDs of the StatefulSets that are in a group. */
export interface BudgetOutsideGroups {
  readonly budget: Budget;
  readonly grouped: ReadonlySet<string>;
}

const PATCHES_AT_A_TIME = 8;
/** A list, or a page of it. */
const CALL_MS = 5000;

/**
 * Brings the annotations of these pods up to date; false if some could not be written. The rest is left once `signal` fires, and once the cluster is
 * in trouble: the next look comes soon. Throws `LeaseLost`.
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
      await cluster.patch(pods, { namespace, name, type: "merge", body }, { ...call, deadlineMs }).catch((error: unknown) => {
        complete = false;
        // A pod of another uid is no conflict to the API server: its patch is Invalid, as nobody may change a uid.
        if (isSuperseded(error) || hasCode(error, "Invalid")) return;
        trouble.abort();
        log.warn("the ready time of a pod could not be written", { pod: name, error });
      });
    },
  );
  return complete;
}

/** Writes the ready times of the pods whose StatefulSet the budget selects, and which is in no group. Never rejects. */
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
    const sets = await readAll({ resource: statefulSets, query, read: readZone }, { cluster: writer.cluster, freshness }, call);
    if (sets.items.every(({ uid }) => grouped.has(uid))) return;
    const { zones } = await gatherUnderBudget(budget, { cluster: writer.cluster, freshness }, call);
    const members = zones.filter(({ uid }) => !grouped.has(uid)).flatMap((zone) => zone.pods);
    await writeReadyTimes(members, writer, { fence, signal });
  } catch (error) {
    if (!hasCode(error, "Cancelled", "LeaseLost"))
      writer.log.warn("the ready times under a disruption budget could not be written", { namespace, budget: name, error });
  }
}
