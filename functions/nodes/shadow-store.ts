/** Reads the shadow of a caller's node, and writes its status. */
import type { Clock } from "../../infra/clock.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { bottlerocketShadows, type CustomObject } from "../../infra/kubernetes/resources.ts";
import { readIdentity } from "../../reconciler/model/identity.ts";
import { SHADOW_GROUP, SHADOW_KIND, shadowName } from "../../reconciler/nodes/shadow.ts";
import type { NodeRequest } from "./node-answer.ts";

export interface ShadowTools {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** The namespace of the shadows. */
  readonly namespace: string;
}

/** The shadow of the caller's node; rejects with `NotFound`. */
export async function getShadow(
  { cluster, namespace }: ShadowTools,
  { node, call }: Pick<NodeRequest, "node" | "call">,
): Promise<CustomObject> {
  return await cluster.get(bottlerocketShadows, { namespace, name: shadowName(node.metadata?.name ?? "") }, call);
}

/** Merges into the status of the shadow as it was read; rejects with `Conflict` if it has changed. Resolves with its new version. */
export async function patchStatus(
  { cluster, namespace }: ShadowTools,
  { shadow, status }: { readonly shadow: CustomObject; readonly status: object },
  call: Call,
): Promise<string> {
  const { name, resourceVersion } = readIdentity(shadow.metadata);
  const body = { apiVersion: `${SHADOW_GROUP}/v2`, kind: SHADOW_KIND, metadata: { resourceVersion }, status };
  return await cluster.patch(bottlerocketShadows, { namespace, name, subresource: "status", type: "merge", body }, call);
}
