import { messageOf } from "../../infra/errors.ts";
import type { Actor } from "../../infra/kubernetes/actor.ts";
import type { ZoneFacts } from "../scaling/snapshot.ts";
import type { WriteBack } from "../scaling/steps.ts";

/** Tells a reference, in its `status.replicas`, how many replicas a zone has made of it (§2.5). A failure is one log line, and changes nothing. */
export async function writeBack(
  { zone, reference: { resource }, name, replicas }: WriteBack,
  { cluster, fence }: Pick<Actor, "cluster" | "fence">,
): Promise<NonNullable<ZoneFacts["writtenBack"]>> {
  const ref = { namespace: zone.namespace, name, subresource: "status" } as const;
  try {
    await cluster.patch(resource, { ...ref, type: "merge", body: { status: { replicas } } }, fence.write());
    return "done";
  } catch (error) {
    return { failure: `${resource.plural}/${name}: ${messageOf(error)}` };
  }
}
