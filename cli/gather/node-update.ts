/** Reads the records of node updates. */
import { absent, hasCode } from "../../infra/errors.ts";
import { bottlerocketShadows, nodeUpdatePolicies } from "../../infra/kubernetes/custom-resources.ts";
import type { Node } from "../../infra/kubernetes/resources.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import { readNode, readShadow } from "../../reconciler/nodes/node.ts";
import { readPolicy, type InvalidPolicy, type Policy } from "../../reconciler/nodes/policy.ts";
import { shadowName } from "../../reconciler/nodes/shadow.ts";
import { explainError } from "../decide/explain-error.ts";
import type { NodeFacts } from "../decide/explain-node.ts";
import type { Session } from "../session.ts";

/** All policies of the cluster; none if the cluster does not know them, or if the caller may not read them. */
export async function gatherPolicies(session: Session): Promise<readonly (Policy | InvalidPolicy)[]> {
  const list = await readAll({ resource: nodeUpdatePolicies, query: {}, read: readPolicy }, session).catch((error) =>
    leaveOut(error),
  );
  return list?.items ?? [];
}

/** Undefined if there are no node updates. */
export async function gatherNodeUpdate(session: Session, object: Node): Promise<NodeFacts | undefined> {
  const policies = await gatherPolicies(session);
  const { shadows: namespace } = await session.settings(session.namespace);
  const name = shadowName(object.metadata?.name ?? "");
  try {
    const shadow = await session.cluster.get(bottlerocketShadows, { namespace, name }).catch(absent);
    return { node: readNode(object, shadow && readShadow(shadow)), policies, namespace };
  } catch (error) {
    if (!hasCode(error, "Forbidden")) throw error;
    session.io.warn(`note: the node's update is not shown: ${explainError(error).message}\n`);
    return undefined;
  }
}

function leaveOut(error: unknown): undefined {
  if (!hasCode(error, "Forbidden", "NotFound")) throw error;
  return undefined;
}
