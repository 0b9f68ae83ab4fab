/**
 * Takes a node out of service and returns it: cordons it, excludes it from load balancers, and later removes only our
 * own marks.
 */
import type { Call } from "../../infra/kubernetes/cluster.ts";
import { type Node, nodes } from "../../infra/kubernetes/resources.ts";
import { retryOnConflict } from "../../infra/kubernetes/retry-on-conflict.ts";
import { isOurs, markNode, type NodePatch, unmarkNode } from "../../reconciler/nodes/node-marks.ts";
import { readHealth } from "../../reconciler/nodes/node.ts";
import { type NodeAnswer, type NodeRequest, type NodeRoute, refuseNode } from "./node-answer.ts";
import { getShadow, isDrainWanted, patchStatus, readShadowStatus, type ShadowTools } from "./shadow-store.ts";

/** Cordons the node and excludes it from load balancers, in one patch, if its reboot is wanted. */
export function excludeFromLoadBalancers(tools: ShadowTools): NodeRoute {
  return async (request) => {
    const shadow = await getShadow(tools, request);
    if (!isDrainWanted(shadow)) return refuseNode("Conflict", `${shadow.metadata.name} wants no reboot`);
    await changeNode(tools, request, (node) => markNode(node, { shadowUid: shadow.metadata.uid ?? "", exclude: true }));
    return { status: 200 };
  };
}

/** Undoes our exclusion alone: the agents of the original uncordon right afterwards. */
export function removeExclusion(tools: ShadowTools): NodeRoute {
  return (request) => giveBack(tools, request, "exclusion");
}

/** Undoes our cordon and our exclusion, and clears the progress of the drain. */
export function uncordon(tools: ShadowTools): NodeRoute {
  return (request) => giveBack(tools, request, "all");
}

/**
 * An announced reboot may happen at any moment: until the agent is back, the node keeps its marks. So does a node that
 * is not Ready.
 */
async function giveBack(tools: ShadowTools, request: NodeRequest, what: "all" | "exclusion"): Promise<NodeAnswer> {
  const shadow = await getShadow(tools, request);
  const status = readShadowStatus(shadow);
  const { node } = request;
  if (status?.rebooting)
    return refuseNode("Conflict", `${shadow.metadata.name} is rebooting since ${status.rebooting.at}`);
  if (isOurs(node) && !isReady(node))
    return refuseNode("Conflict", `node ${node.metadata?.name} is not Ready: it stays cordoned until it is`);
  await changeNode(tools, request, (now) => (isReady(now) ? unmarkNode(now, what) : undefined));
  if (what === "all" && status?.drain) await patchStatus(tools, { shadow, status: { drain: null } }, request.call);
  return { status: 200 };
}

const isReady = ({ status }: Node): boolean => readHealth(status).ready;

/**
 * Patches the node until nothing is left to do; reads it again after a conflict. Resolves with true if there was
 * something to do.
 */
export async function changeNode(
  { cluster, clock }: Pick<ShadowTools, "cluster" | "clock">,
  { node: first, call }: { readonly node: Node; readonly call: Call },
  decide: (node: Node) => NodePatch | undefined,
): Promise<boolean> {
  const name = first.metadata?.name ?? "";
  const attempt = async (number: number): Promise<boolean> => {
    const body = decide(number === 1 ? first : await cluster.get(nodes, { name }, call));
    if (!body) return number > 1;
    await cluster.patch(nodes, { name, type: "merge", body }, call);
    return true;
  };
  return await retryOnConflict(attempt, { clock, call });
}
