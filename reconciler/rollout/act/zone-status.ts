/** Writes the status of a zone. */
import { statefulSets } from "../../../infra/kubernetes/resources.ts";
import type { Actor } from "../../../infra/kubernetes/actor.ts";
import type { Zone } from "../../model/zone.ts";

/**
 * Patches the status of the zone; throws `Conflict` if the zone has changed or was recreated since it was read. Without
 * `status` it only checks that: it detects a zone that was paused, scaled or given another template meanwhile. Status
 * patches call no admission webhooks. The patch has no UID: a wrong UID would be answered with 422 before the versions
 * are compared.
 */
export async function patchZoneStatus(zone: Zone, { cluster, fence }: Actor, status?: object): Promise<void> {
  const { name, namespace, resourceVersion } = zone;
  const body = { metadata: { resourceVersion }, ...(status && { status }) };
  await cluster.patch(statefulSets, { name, namespace, subresource: "status", type: "merge", body }, fence.write());
}
