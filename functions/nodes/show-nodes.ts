/**
 * Shows the nodes and their policy in the node API's `/metrics`, read from BottlerocketShadows and the NodeUpdatePolicy:
 * no reconciler process exists between two runs (§17.11).
 */
import { absent } from "../../infra/errors.ts";
import type { Call } from "../../infra/kubernetes/cluster.ts";
import { bottlerocketShadows, nodeUpdatePolicies } from "../../infra/kubernetes/custom-resources.ts";
import { type Metrics, OTHER } from "../../infra/metrics/metrics.ts";
import { type Shadow, readShadow } from "../../reconciler/nodes/node.ts";
import { type Policy, POLICY_NAME, readPolicy } from "../../reconciler/nodes/policy.ts";
import { type ShownOnce, showOnce } from "../totals/show-once.ts";
import { METRICS } from "../../infra/metrics/tables/metric-table.ts";
import type { Sample, Samples } from "../../infra/metrics/registry.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import { deadlineOf } from "../../reconciler/nodes/state-machine.ts";
import { shadowName, STATES } from "../../reconciler/nodes/shadow.ts";

interface NodesOptions extends Pick<ShownOnce, "cluster" | "clock" | "log" | "metrics" | "identity"> {
  /** The namespace of the shadows. */
  readonly namespace: string;
}

/** The Lease of the replica that shows them. */
const TURN = "zonewise-node-metrics";

/** Metrics that read the nodes before each scrape. Without them, the process's own are shown. */
export function showNodes(options: NodesOptions): Pick<Metrics, "render"> {
  const lease = { namespace: options.namespace, name: TURN };
  const sample = createNodeSampler();
  return showOnce({ ...options, lease, what: "the nodes", gather: (call) => gather(options, sample, call) });
}

async function gather({ cluster, namespace }: NodesOptions, sample: NodeSampler, call: Call) {
  const shadows: Shadow[] = [];
  for await (const { items } of cluster.list(bottlerocketShadows, { namespace }, call))
    shadows.push(...items.map(readShadow));
  const policy = await cluster.get(nodeUpdatePolicies, { name: POLICY_NAME }, call).catch(absent);
  return sample(shadows, policy && readPolicy(policy));
}

/** Upper bound of the failed or active nodes that have their own series. */
export const MAX_NODES = 1000;
/** Upper bound of the versions that have their own series. */
export const MAX_VERSIONS = 100;
/** Kinds of transitions, and reasons why nodes wait; both lists are bounded by their writers. */
export const MAX_KINDS = 200;

type NodeSampler = (shadows: readonly Pick<Shadow, "name" | "status">[], policy: Policy | undefined) => Samples;

const PREFIX = shadowName("");

/** A version that no node has any more is shown as 0 until the process ends. */
export function createNodeSampler(): NodeSampler {
  const seenVersions = new Set<string>([OTHER]);
  return (shadows, policy) => {
    const reported = shadows.flatMap(({ name, status }) =>
      // One of another name belongs to no agent, and might repeat a series.
      status && name.startsWith(PREFIX) ? [{ node: name.slice(PREFIX.length), ...status }] : [],
    );
    for (const { current_version } of reported) if (seenVersions.size < MAX_VERSIONS) seenVersions.add(current_version);
    const versions = Map.groupBy(reported, ({ current_version: version }) =>
      seenVersions.has(version) ? version : OTHER,
    );
    const states = Map.groupBy(reported, ({ current_state }) => current_state);
    const failing = reported.filter(({ crash_count }) => crash_count > 0).slice(0, MAX_NODES);
    return samplesOf([
      [
        METRICS.hostsVersion,
        [...seenVersions].map((version) => one({ bottlerocket_version: version }, versions.get(version)?.length ?? 0)),
      ],
      [METRICS.hostsState, STATES.map((state) => one({ state }, states.get(state)?.length ?? 0))],
      [METRICS.hostsCrashes, failing.map(({ node, crash_count }) => one({ node }, crash_count))],
      ...(policy ? samplePolicy(policy) : []),
    ]);
  };
}

type Row = readonly [metric: { readonly name: string }, samples: readonly Sample[]];

const one = (labels: Sample["labels"], value: number): Sample => ({ labels, value });

function samplePolicy(policy: Policy): Row[] {
  const { status } = policy;
  const active = status.active.slice(0, MAX_NODES).map(({ node, phase, since }) => {
    const started = (parseTimestamp(since) ?? 0) / 1000;
    return { labels: { node, phase }, started, deadline: started + deadlineOf(phase, policy) };
  });
  return [
    [METRICS.nodesActive, [one({}, status.active.length)]],
    [METRICS.nodePhase, active.map(({ labels, started }) => one(labels, started))],
    [METRICS.nodeDeadline, active.map(({ labels, deadline }) => one(labels, deadline))],
    [METRICS.nodesFrozen, [one({}, status.frozen ? 1 : 0)]],
    [METRICS.nodesSkipped, bounded(Object.entries(status.skipped)).map(([reason, count]) => one({ reason }, count))],
    [
      METRICS.nodeTransitions,
      bounded(status.transitions).map(({ from, to, fromVersion, toVersion, count }) =>
        one({ from, to, from_version: fromVersion, to_version: toVersion }, count),
      ),
    ],
  ];
}

const bounded = <T>(list: readonly T[]): readonly T[] => list.slice(0, MAX_KINDS);

const samplesOf = (rows: readonly Row[]): Samples => new Map(rows.map(([{ name }, samples]) => [name, samples]));
