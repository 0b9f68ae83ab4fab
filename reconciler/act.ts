/** Carries out decisions, with writes that take effect only if what was judged still holds. */
import type { Call, Cluster } from "../infra/kubernetes/cluster.ts";
import { hasCode } from "../infra/errors.ts";
import { events, type Event } from "../infra/kubernetes/resources.ts";
import type { Effect } from "./actor.ts";
import { type BatchActor, deletePods } from "./delete-pods.ts";
import type { Zone } from "./model/zone.ts";
import type { DeletePods, FinishZone } from "./rollout/zone.ts";
import { patchStatus } from "./zone-status.ts";

/**
 * Carries out a decision about a rollout; `judged` are the zones of its group. Throws `Conflict` if the zone or a pod has changed since it was judged,
 * `Cancelled`, `LeaseLost`, or what the cluster says.
 */
export async function act(decision: DeletePods | FinishZone, judged: readonly Zone[], actor: BatchActor): Promise<Effect> {
  switch (decision.action) {
    case "deletePods":
      return deletePods(decision, judged, actor);
    case "finishZone":
      await patchStatus(decision.zone, actor, { currentRevision: decision.zone.status.updateRevision });
      return { replaced: [], denied: [] };
    default:
      return decision satisfies never;
  }
}

/** Writes an Event; one of the same name is counted up instead. Throws what the cluster says. */
export async function writeEvent(cluster: Cluster, event: Event, call: Call): Promise<void> {
  const { namespace = "", name = "" } = event.metadata;
  try {
    await cluster.create(events, { namespace, body: event }, call);
  } catch (error) {
    if (!hasCode(error, "AlreadyExists")) throw error;
    const earlier = await cluster.get(events, { namespace, name }, call);
    const again = {
      count: (earlier.count ?? 1) + 1,
      ...(event.message && { message: event.message }),
      ...(event.lastTimestamp && { lastTimestamp: event.lastTimestamp }),
    };
    await cluster.patch(events, { namespace, name, type: "merge", body: again }, call);
  }
}
