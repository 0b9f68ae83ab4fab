/** Reads what is recorded of PhasedRollouts and of node updates. */
import { absent, hasCode } from "../../infra/errors.ts";
import { bottlerocketShadows, nodeUpdatePolicies } from "../../infra/kubernetes/custom-resources.ts";
import type { Node } from "../../infra/kubernetes/resources.ts";
import { readNode, readShadow } from "../../reconciler/nodes/node.ts";
import { type Policy, POLICY_NAME, readPolicy } from "../../reconciler/nodes/policy.ts";
import { shadowName } from "../../reconciler/nodes/shadow.ts";
import { gatherRollouts, type GatheredRollout } from "../../reconciler/phased/act/gather-rollouts.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import { explainError } from "../decide/explain-error.ts";
import type { NodeFacts } from "../decide/explain-node.ts";
import type { Session } from "../session.ts";

interface FoundRollouts {
  readonly phased: readonly GatheredRollout[];
  /** The reason why they may not be read. */
  readonly unread?: string;
}

/** Empty if the cluster does not know them. */
export async function readPhased(session: Session, namespace: string): Promise<FoundRollouts> {
  try {
    // The default is enough: the meaning of a check's answer is not shown.
    return { phased: (await gatherRollouts(namespace, "NoData", session).catch(absent))?.rollouts ?? [] };
  } catch (error) {
    if (!hasCode(error, "Forbidden")) throw error;
    return { phased: [], unread: explainError(error).message };
  }
}

/** Objects that may not be read are named in a warning and left out. */
export async function gatherPhased(session: Session): Promise<readonly GatheredRollout[]> {
  const { phased, unread } = await readPhased(session, session.namespace);
  if (unread !== undefined) session.io.warn(`note: PhasedRollouts are not shown: ${unread}\n`);
  return phased;
}

/** Undefined if there is none, or if the caller may not read it. */
async function gatherPolicy(session: Session): Promise<Policy | undefined> {
  const query = { fieldSelector: `metadata.name=${POLICY_NAME}` };
  const list = await readAll({ resource: nodeUpdatePolicies, query, read: readPolicy }, session).catch(
    (error: unknown) => {
      if (!hasCode(error, "Forbidden", "NotFound")) throw error;
    },
  );
  return list?.items[0];
}

/** Undefined if there are no node updates. */
export async function gatherNodeUpdate(session: Session, object: Node): Promise<NodeFacts | undefined> {
  const policy = await gatherPolicy(session);
  const { shadows: namespace } = await session.settings(session.namespace);
  const name = shadowName(object.metadata?.name ?? "");
  try {
    const shadow = await session.cluster.get(bottlerocketShadows, { namespace, name }).catch(absent);
    return { node: readNode(object, shadow && readShadow(shadow)), policy, namespace };
  } catch (error) {
    if (!hasCode(error, "Forbidden")) throw error;
    session.io.warn(`note: the node's update is not shown: ${explainError(error).message}\n`);
    return undefined;
  }
}
