/** Carries out decisions about a rollout, with writes that take effect only if the judged objects have not changed. */
import type { Effect, DeletePods, FinishZone } from "../../model/outcome.ts";
import type { DisruptionContext } from "../../budget/act/may-disrupt.ts";
import { deletePods, type Judged } from "./delete-pods.ts";
import { patchZoneStatus } from "./zone-status.ts";

/**
 * Carries out the decision about the group that was judged. Throws `Conflict` if the zone or a pod has changed since,
 * `Cancelled`, `LeaseLost`, or the error of the API server.
 */
export async function takeRolloutStep(
  decision: DeletePods | FinishZone,
  judged: Judged,
  actor: DisruptionContext,
): Promise<Effect> {
  switch (decision.action) {
    case "deletePods":
      return deletePods(decision, judged, actor);
    case "finishZone":
      await patchZoneStatus(decision.zone, actor, { currentRevision: decision.zone.status.updateRevision });
      return { replaced: [], denied: [] };
    default:
      return decision satisfies never;
  }
}
