/** Reads the shadow of a caller's node and the node's wanted state, and writes its status. */
import type { Clock } from "../../infra/clock.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { readIdentity } from "../../infra/kubernetes/identity.ts";
import { bottlerocketShadows, type CustomObject } from "../../infra/kubernetes/custom-resources.ts";
import { RolloutError } from "../../infra/errors.ts";
import {
  SHADOW_GROUP,
  SHADOW_KIND,
  shadowName,
  shadowSpec,
  type ShadowStatus,
  shadowStatus,
  type State,
} from "../../reconciler/nodes/shadow.ts";
import { moveFor } from "../../reconciler/nodes/state-machine.ts";
import type { NodeRequest } from "./node-answer.ts";

export interface ShadowTools {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** The namespace of the shadows. */
  readonly namespace: string;
}

/**
 * The shadow of the caller's node. Rejects with `NotFound` also if the shadow belongs to an earlier node of this name:
 * garbage collection deletes it soon.
 */
export async function getShadow(
  { cluster, namespace }: ShadowTools,
  { node, call }: Pick<NodeRequest, "node" | "call">,
): Promise<CustomObject> {
  const { name, uid } = readIdentity(node.metadata ?? {});
  const shadow = await cluster.get(bottlerocketShadows, { namespace, name: shadowName(name) }, call);
  const owner = shadow.metadata.ownerReferences?.[0]?.uid ?? uid;
  if (owner !== uid) throw new RolloutError("NotFound", `${shadowName(name)} belongs to an earlier node`);
  return shadow;
}

/**
 * Merges into the status of the shadow as it was read; rejects with `Conflict` if it has changed. Resolves with its new
 * version.
 */
export async function patchStatus(
  { cluster, namespace }: ShadowTools,
  { shadow, status }: { readonly shadow: CustomObject; readonly status: object },
  call: Call,
): Promise<string> {
  const { name, resourceVersion } = readIdentity(shadow.metadata);
  const body = { apiVersion: `${SHADOW_GROUP}/v2`, kind: SHADOW_KIND, metadata: { resourceVersion }, status };
  return await cluster.patch(
    bottlerocketShadows,
    { namespace, name, subresource: "status", type: "merge", body },
    call,
  );
}

export const readShadowStatus = ({ status }: CustomObject): ShadowStatus | undefined =>
  shadowStatus.safeParse(status).data;

export const wantedState = ({ spec }: CustomObject): State | undefined => shadowSpec.safeParse(spec).data?.state;

/** True between the staged update and its reboot: only then may an agent drain its node. */
export function isDrainWanted(shadow: CustomObject): boolean {
  const wanted = wantedState(shadow);
  const move = wanted && moveFor(wanted, readShadowStatus(shadow)?.current_state);
  return move?.by === "agent" && move.action === "reboot";
}
