import { messageOf } from "../../../infra/errors.ts";
import type { Actor } from "../../../infra/kubernetes/actor.ts";
import type { ZoneFacts } from "../snapshot.ts";
import type { WriteBack } from "../steps.ts";

/**
 * Writes the replicas of a zone to the `status.replicas` of its reference (§2.5). A failure causes one log line and no
 * other effect.
 */
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
