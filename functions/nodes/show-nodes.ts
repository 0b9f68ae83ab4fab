/**
 * Shows the nodes and the policies in the node API's `/metrics`, read from BottlerocketShadows and NodeUpdatePolicies:
 * no reconciler process exists between two runs (§17.11).
 */
import type { Call } from "../../infra/kubernetes/cluster.ts";
import { bottlerocketShadows, nodeUpdatePolicies } from "../../infra/kubernetes/custom-resources.ts";
import type { Metrics } from "../../infra/metrics/metrics.ts";
import { readShadow, type Shadow } from "../../reconciler/nodes/node.ts";
import { type InvalidPolicy, type Policy, readPolicy } from "../../reconciler/nodes/policy.ts";
import { showOnce, type ShownOnce } from "../totals/show-once.ts";
import { createNodeSampler, type NodeSampler } from "./node-samples.ts";

interface NodesOptions extends Pick<ShownOnce, "cluster" | "clock" | "log" | "metrics" | "identity"> {
  /** The namespace of the shadows. */
  readonly namespace: string;
}

/** The Lease of the replica that shows them. */
const TURN = "zonewise-node-metrics";

/** Metrics that read the nodes before each scrape. Without them, the process's own are shown. */
export function showNodes(options: NodesOptions): Pick<Metrics, "render" | "typeFor"> {
  const lease = { namespace: options.namespace, name: TURN };
  const sample = createNodeSampler();
  return showOnce({ ...options, lease, what: "the nodes", gather: (call) => gather(options, sample, call) });
}

async function gather({ cluster, namespace }: NodesOptions, sample: NodeSampler, call: Call) {
  const shadows: Shadow[] = [];
  for await (const { items } of cluster.list(bottlerocketShadows, { namespace }, call))
    shadows.push(...items.map(readShadow));
  const policies: (Policy | InvalidPolicy)[] = [];
  for await (const { items } of cluster.list(nodeUpdatePolicies, {}, call)) policies.push(...items.map(readPolicy));
  return sample(shadows, policies);
}
