/** Carries out decisions, with writes that take effect only if what was judged still holds. */
import type { Call, Cluster } from "../infra/kubernetes/cluster.ts";
import { hasCode, messageOf, RolloutError } from "../infra/errors.ts";
import { formatTimestamp } from "../infra/timestamp.ts";
import { events, statefulSets, type Event, type Resource } from "../infra/kubernetes/resources.ts";
import type { Actor, Effect } from "./actor.ts";
import { type BatchActor, deletePods } from "./delete-pods.ts";
import { ANNOTATIONS } from "./model/annotations.ts";
import type { Zone } from "./model/zone.ts";
import type { Note } from "./scaler/prepare.ts";
import type { DeletePods, FinishZone } from "./rollout/zone.ts";
import type { ScaleZone } from "./scaling/snapshot.ts";
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

/**
 * Scales a zone: replicas, and the time of a downscale with them in one write, so that neither is there without the other. Throws `Conflict` if the
 * zone has changed since it was read, `Invalid` if the change is accepted and not done, `LeaseLost`, or what the cluster says.
 */
export async function changeReplicas({ zone, replicas, recordAt }: ScaleZone, { cluster, fence, freshness }: Actor): Promise<void> {
  const { name, namespace, resourceVersion } = zone;
  const annotations = recordAt === undefined ? undefined : { [ANNOTATIONS.lastDownscale]: formatTimestamp(recordAt) };
  const body = { metadata: { resourceVersion, ...(annotations && { annotations }) }, spec: { replicas } };
  const result = await cluster.change(statefulSets, { name, namespace }, "strategic", body, fence.write());
  freshness.noteWritten(statefulSets, result.metadata?.resourceVersion ?? "");
  if (result.spec?.replicas === replicas) return;
  throw new RolloutError("Invalid", `it was accepted, but ${name} still has ${result.spec?.replicas} replicas: something pins them`);
}

/** Tells a reference, in its `status.replicas`, how many replicas a zone has made of it (§2.5). A failure is told in a line, and changes nothing. */
export async function tellReference(
  { cluster, fence }: Pick<Actor, "cluster" | "fence">,
  zone: Zone,
  resource: Resource,
  name: string,
  replicas: number,
): Promise<Note[]> {
  try {
    await cluster.patch(
      resource,
      { namespace: zone.namespace, name, subresource: "status" },
      "merge",
      { status: { replicas } },
      fence.write(),
    );
    return [];
  } catch (error) {
    return [
      { level: "warn", text: `${zone.name}: its replicas could not be written back to ${resource.plural}/${name}: ${messageOf(error)}` },
    ];
  }
}

/** Writes an Event; one of the same name is counted up instead. Throws what the cluster says. */
export async function writeEvent(cluster: Cluster, event: Event, call: Call): Promise<void> {
  const { namespace = "", name = "" } = event.metadata;
  try {
    await cluster.create(events, namespace, event, call);
  } catch (error) {
    if (!hasCode(error, "AlreadyExists")) throw error;
    const earlier = await cluster.get(events, { namespace, name }, call);
    const again = {
      count: (earlier.count ?? 1) + 1,
      ...(event.message && { message: event.message }),
      ...(event.lastTimestamp && { lastTimestamp: event.lastTimestamp }),
    };
    await cluster.patch(events, { namespace, name }, "merge", again, call);
  }
}
