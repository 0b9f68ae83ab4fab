/** How long a node's drain may take before its reboot is forced, as its policy says. */
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { nodeUpdatePolicies } from "../../infra/kubernetes/resources.ts";
import { isInvalid, readPolicy } from "../../reconciler/nodes/policy.ts";

/**
 * Resolves with milliseconds, or with undefined if no policy has the node in one of its slots and forces its reboot.
 */
export async function forceAfterMs(cluster: Cluster, nodeName: string, call: Call): Promise<number | undefined> {
  for await (const { items } of cluster.list(nodeUpdatePolicies, {}, call))
    for (const policy of items.map(readPolicy)) {
      if (isInvalid(policy) || policy.drain.onTimeout !== "Reboot") continue;
      if (policy.status.active.some(({ node }) => node === nodeName)) return policy.drain.timeoutSeconds * 1000;
    }
  return undefined;
}
