/** Shows the nodes and the policies in the node API's `/metrics`, read from BottlerocketShadows and NodeUpdatePolicies: the reconciler is gone between its runs (§17.11). */
import type { Call } from "../../infra/kubernetes/cluster.ts";
import { bottlerocketShadows, nodeUpdatePolicies } from "../../infra/kubernetes/resources.ts";
import type { Metrics } from "../../infra/metrics/metrics.ts";
import { type MeasuredNode, type MeasuredPolicy, sampleNodeUpdates } from "../../infra/metrics/node-update-metrics.ts";
import { readShadow } from "../../reconciler/nodes/node.ts";
import { measurePolicy } from "../../reconciler/nodes/phase.ts";
import { readPolicy } from "../../reconciler/nodes/policy.ts";
import { showOnce, type ShownOnce } from "../totals/show-once.ts";

export interface NodesOptions extends Pick<ShownOnce, "cluster" | "clock" | "log" | "metrics" | "identity"> {
  /** The namespace of the shadows. */
  readonly namespace: string;
}

/** The Lease of the replica that shows them. */
const TURN = "zonewise-node-metrics";

/** Metrics that read the nodes before each scrape. Without them, the process's own are shown. */
export function showNodes(options: NodesOptions): Pick<Metrics, "render" | "contentType"> {
  const lease = { namespace: options.namespace, name: TURN };
  return showOnce({ ...options, lease, what: "the nodes", gather: (call) => gather(options, call) });
}

async function gather({ cluster, namespace }: NodesOptions, call: Call) {
  const nodes: MeasuredNode[] = [];
  for await (const { items } of cluster.list(bottlerocketShadows, { namespace }, call))
    for (const object of items) {
      const shadow = readShadow(object);
      nodes.push({ name: shadow.owner?.name ?? shadow.name, shadow });
    }
  const policies: MeasuredPolicy[] = [];
  for await (const { items } of cluster.list(nodeUpdatePolicies, {}, call))
    policies.push(...items.map((object) => measurePolicy(readPolicy(object))));
  return await sampleNodeUpdates({ nodes, policies });
}
