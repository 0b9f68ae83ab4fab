/** Creates the shadow of the caller's node. */
import type { CustomObject } from "../../infra/kubernetes/custom-resources.ts";
import { bottlerocketShadows } from "../../infra/kubernetes/custom-resources.ts";
import { hasCode } from "../../infra/errors.ts";
import { readIdentity } from "../../reconciler/model/identity.ts";
import { MANAGED_LABEL, MANAGED_VALUE, newShadow, shadowName } from "../../reconciler/nodes/shadow.ts";
import { type NodeRoute, refuseNode } from "./node-answer.ts";
import type { ShadowTools } from "./shadow-store.ts";

/**
 * Resolves with the new or the existing shadow (NW17). 409 if the shadow belongs to an earlier node of this name, or if
 * the node has lost its label: then the reconciler has deleted the shadow, and the agent runs for a moment longer.
 */
export function createShadow({ cluster, namespace }: ShadowTools): NodeRoute {
  return async ({ node, call }) => {
    const { name, uid } = readIdentity(node.metadata ?? {});
    if (node.metadata?.labels?.[MANAGED_LABEL] !== MANAGED_VALUE)
      return refuseNode("Conflict", `node ${name} is not managed`);
    const body = newShadow({ name, uid }, namespace);
    const shadow = await cluster
      .create<CustomObject>(bottlerocketShadows, { namespace, body }, call)
      .catch(async (error: unknown) => {
        if (!hasCode(error, "AlreadyExists")) throw error;
        return await cluster.get(bottlerocketShadows, { namespace, name: shadowName(name) }, call);
      });
    if (shadow.metadata.ownerReferences?.[0]?.uid !== uid)
      return refuseNode("Conflict", `${shadowName(name)} belongs to another node`);
    return { status: 200, body: shadow, version: shadow.metadata.resourceVersion ?? "" };
  };
}
