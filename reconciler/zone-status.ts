/** Writes the status of a zone. */
import { statefulSets } from "../infra/kubernetes/resources.ts";
import type { Actor } from "./actor.ts";
import type { Zone } from "./model/zone.ts";

/**
 * Throws `Conflict` if the zone has changed, or was made anew, since it was read. With no `status` that is all it does: a zone that was paused,
 * scaled or given another template meanwhile is found out. Status patches meet no admission webhooks. The UID stays out: another one than the
 * object's is answered with 422, before the versions are compared.
 */
export async function patchStatus(zone: Zone, { cluster, fence, freshness }: Actor, status?: object): Promise<void> {
  const { name, namespace, resourceVersion } = zone;
  const body = { metadata: { resourceVersion }, ...(status && { status }) };
  const version = await cluster.patch(statefulSets, { name, namespace, subresource: "status" }, "merge", body, fence.write());
  freshness.noteWritten(statefulSets, version);
}
