/** Carries out decisions, with writes that take effect only if what was judged still holds. */
import type { Call, Cluster } from "../infra/cluster.ts";
import { hasCode, messageOf, RolloutError } from "../infra/errors.ts";
import type { Fence } from "../infra/lease.ts";
import { formatTimestamp } from "../infra/timestamp.ts";
import { events, pods, statefulSets, type Event, type Resource } from "../infra/resources.ts";
import { noteVersion, type Freshness } from "./gather.ts";
import { ANNOTATIONS } from "./model/annotations.ts";
import type { Hold } from "./model/decision.ts";
import type { Pod } from "./model/pod.ts";
import type { Zone } from "./model/zone.ts";
import type { Note } from "./prepare.ts";
import type { DeletePods, FinishZone } from "./rollout/zone.ts";
import type { ScaleZone } from "./scaling/snapshot.ts";

/** Leave to delete a pod. */
export interface Permit {
  readonly action: "permit";
  /** Gives it back, unused; never rejects. */
  readonly withdraw: (call: Call) => Promise<void>;
}

/** Asked right before each pod is deleted, within the bounds of `call`: the hold that forbids it, or leave, which need not be given back if it is undefined. */
export type MayDisrupt = (pod: Pod, zone: Zone, call: Call) => Promise<Hold | Permit | undefined>;

export interface Actor {
  readonly cluster: Cluster;
  readonly fence: Fence;
  readonly freshness: Freshness;
  readonly mayDisrupt: MayDisrupt;
}

/** A decision to do something. */
export type Action = DeletePods | FinishZone | ScaleZone;

/** What a decision came to. */
export interface Effect {
  readonly replaced: readonly Pod[];
  /** Why pods that were chosen stayed. */
  readonly denied: readonly Hold[];
}

/** Carries out one decision. Throws `Conflict` if the zone or a pod has changed since it was judged, `LeaseLost`, or what the cluster says. */
export async function act(decision: Action, actor: Actor): Promise<Effect> {
  switch (decision.action) {
    case "deletePods":
      return deletePods(decision, actor);
    case "finishZone":
      await patchStatus(decision.zone, actor, { currentRevision: decision.zone.status.updateRevision });
      return { replaced: [], denied: [] };
    case "scaleZone":
      await patchReplicas(decision, actor);
      return { replaced: [], denied: [] };
    default:
      return decision satisfies never;
  }
}

/** One pod after the other; a pod that the budget denies does not keep the others from their turn [1.5.8]. */
async function deletePods({ zone, pods: chosen }: DeletePods, actor: Actor): Promise<Effect> {
  const replaced: Pod[] = [];
  const denied: Hold[] = [];
  for (const pod of chosen) {
    const answer = await actor.mayDisrupt(pod, zone, actor.fence.write());
    if (answer?.action === "hold") {
      denied.push(answer);
      continue;
    }
    try {
      // Right before the first deletion: after it, the StatefulSet's own status changes.
      if (replaced.length === 0) await confirmUnchanged(zone, actor);
      const version = await actor.cluster.remove(pods, pod, { uid: pod.uid, resourceVersion: pod.resourceVersion }, actor.fence.write());
      noteVersion(actor.freshness, pods, version);
      replaced.push(pod);
    } catch (error) {
      if (hasCode(error, ...NOTHING_DONE)) await answer?.withdraw(actor.fence.write());
      // What has been done is told even when the rest must be gathered and decided anew.
      if (replaced.length === 0) throw error;
      break;
    }
  }
  return { replaced, denied };
}

/** The pod is there as before; after any other error it may be on its way out, and the permit is not given back. */
const NOTHING_DONE = ["Conflict", "Forbidden", "Invalid", "Throttled", "Unauthorized"] as const;

/**
 * A patch that changes nothing but carries the resourceVersion: the server refuses it (409) if the StatefulSet has changed, or was made
 * anew, since it was read: a zone that was paused, scaled or given another template meanwhile loses no pod. Status patches meet no admission
 * webhooks. The UID stays out: another one than the object's is answered with 422, before the versions are compared.
 */
async function confirmUnchanged(zone: Zone, actor: Actor): Promise<void> {
  await patchStatus(zone, actor, undefined);
}

async function patchStatus(zone: Zone, { cluster, fence, freshness }: Actor, status: object | undefined): Promise<void> {
  const { name, namespace, resourceVersion } = zone;
  const body = { metadata: { resourceVersion }, ...(status && { status }) };
  const version = await cluster.patch(statefulSets, { name, namespace, subresource: "status" }, "merge", body, fence.write());
  noteVersion(freshness, statefulSets, version);
}

/** Replicas, and the time of a downscale with them in one write, so that neither is there without the other. Throws `Invalid` if it is accepted and not done. */
async function patchReplicas({ zone, replicas, recordAt }: ScaleZone, { cluster, fence, freshness }: Actor): Promise<void> {
  const { name, namespace, resourceVersion } = zone;
  const annotations = recordAt === undefined ? undefined : { [ANNOTATIONS.lastDownscale]: formatTimestamp(recordAt) };
  const body = { metadata: { resourceVersion, ...(annotations && { annotations }) }, spec: { replicas } };
  const result = await cluster.change(statefulSets, { name, namespace }, "strategic", body, fence.write());
  noteVersion(freshness, statefulSets, result.metadata?.resourceVersion ?? "");
  if (result.spec?.replicas === replicas) return;
  throw new RolloutError("Invalid", `it was accepted, but ${name} still has ${result.spec?.replicas} replicas: something pins them`);
}

/** Tells a reference, in its `status.replicas`, how many replicas a zone has made of it [2.5]. A failure is told in a line, and changes nothing. */
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
