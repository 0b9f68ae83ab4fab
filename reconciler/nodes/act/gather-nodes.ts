/**
 * Reads the facts that node updates are decided by: the policy first, then shadows, then nodes, so that the write of its
 * status proves that the counted slots were the latest. A cluster without the definitions has no node updates.
 */
import type { Source } from "../../../infra/kubernetes/context.ts";
import type { Call } from "../../../infra/kubernetes/cluster.ts";
import { absent } from "../../../infra/errors.ts";
import { bottlerocketShadows, nodeUpdatePolicies } from "../../../infra/kubernetes/custom-resources.ts";
import { type Node, nodes } from "../../../infra/kubernetes/resources.ts";
import { readAll } from "../../snapshot/gather.ts";
import { byName } from "../../model/order.ts";
import { readNode, readShadow, type UpdateNode } from "../node.ts";
import { type Policy, POLICY_NAME, readPolicy } from "../policy.ts";
import { MANAGED_LABEL, MANAGED_VALUE, shadowName } from "../shadow.ts";

export interface NodeLists {
  readonly policy: Policy | undefined;
  /** Nodes that are managed, have a shadow, or are active, in byte order of their names. */
  readonly nodes: readonly UpdateNode[];
}

/**
 * `namespace` is that of the shadows. Rejects with `NotFound` if a definition is missing, or the error of the API
 * server.
 */
export async function gatherNodes(namespace: string, source: Source, call?: Call): Promise<NodeLists> {
  const query = { fieldSelector: `metadata.name=${POLICY_NAME}` };
  const policies = await readAll({ resource: nodeUpdatePolicies, query, read: readPolicy }, source, call);
  const [policy] = policies.items;
  const shadows = await readAll(
    { resource: bottlerocketShadows, query: { namespace }, read: readShadow },
    source,
    call,
  );
  const byShadow = new Map(shadows.items.map((shadow) => [shadow.name, shadow]));
  const readOne = (object: Node): UpdateNode => readNode(object, byShadow.get(shadowName(object.metadata?.name ?? "")));
  const labelled = { labelSelector: `${MANAGED_LABEL}=${MANAGED_VALUE}` };
  const { items: managed } = await readAll({ resource: nodes, query: labelled, read: readOne }, source, call);
  const listed = new Set(managed.map(({ name }) => name));
  const owners = shadows.items.flatMap(({ owner }) => owner?.name ?? []);
  const active = policy?.status.active.map(({ node }) => node) ?? [];
  const unlabelled = [...new Set([...owners, ...active])].filter((name) => !listed.has(name));
  const found = await Promise.all(
    unlabelled.map((name) => source.cluster.get(nodes, { name }, call).then(readOne, absent)),
  );
  return { policy, nodes: [...managed, ...found.filter((node) => node !== undefined)].toSorted(byName) };
}
