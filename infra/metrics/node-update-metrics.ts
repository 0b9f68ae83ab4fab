/** Metrics of node updates, replaced at each pass: the names of the original, and those that tell why a node waits (NR22, NR32). */
import { parseTimestamp } from "../timestamp.ts";
import { METRICS } from "./tables/metric-table.ts";
import { NODE_METRICS } from "./tables/node-metric-table.ts";
import { createRegistry, type Samples } from "./registry.ts";
import { OTHER } from "./series-limit.ts";
import type { Makers } from "./webhook-metrics.ts";

/** What is measured of a node. */
export interface MeasuredNode {
  readonly name: string;
  readonly shadow:
    | { readonly status: { readonly current_version: string; readonly current_state: string; readonly crash_count: number } | undefined }
    | undefined;
}

export interface MeasuredPolicy {
  readonly name: string;
  /** Undefined if the policy is not valid. */
  readonly status?: {
    /** `since`: RFC 3339. `seconds`: how long the phase may take. */
    readonly active: readonly { readonly node: string; readonly phase: string; readonly since: string; readonly seconds: number }[];
    readonly frozen?: unknown;
    readonly windowOpen: boolean;
    readonly skipped: Readonly<Record<string, number>>;
    readonly transitions: readonly {
      readonly from: string;
      readonly to: string;
      readonly fromVersion: string;
      readonly toVersion: string;
      readonly count: number;
    }[];
  };
}

export interface MeasuredNodes {
  readonly nodes: readonly MeasuredNode[];
  readonly policies: readonly MeasuredPolicy[];
  /** Milliseconds since the epoch of a pass of the controller; undefined for a process that only reads. */
  readonly now?: number;
}

export interface NodeUpdateMetrics {
  seen(seen: MeasuredNodes): void;
}

const STATES = ["Idle", "StagedAndPerformedUpdate", "RebootedIntoUpdate", "MonitoringUpdate", "ErrorReset"];
/** The first nodes that have failed, or that are active, have a series of their own. */
export const MAX_NODES = 1000;
/** Policies, and versions, that have series of their own. */
export const MAX_POLICIES = 20;
export const MAX_VERSIONS = 100;
/** Kinds of transitions of a policy, and reasons why its nodes wait; both lists are bounded by their writers. */
export const MAX_KINDS = 200;

export function createNodeUpdateMetrics({ counter, gauge }: Pick<Makers, "counter" | "gauge">): NodeUpdateMetrics {
  const versions = gauge(METRICS.hostsVersion);
  const states = gauge(METRICS.hostsState);
  const crashes = gauge(METRICS.hostsCrashes);
  const active = gauge(METRICS.nodesActive);
  const phases = gauge(METRICS.nodePhase);
  const deadlines = gauge(METRICS.nodeDeadline);
  const frozen = gauge(METRICS.nodesFrozen);
  const window = gauge(METRICS.nodesWindow);
  const skipped = gauge(METRICS.nodesSkipped);
  const transitions = counter(METRICS.nodeTransitions);
  const lastPass = gauge(METRICS.nodesLastPass);
  // Without labels it would be shown as 0 by processes that know no pass.
  lastPass.remove({});
  const seenVersions = new Set<string>([OTHER]);

  function seeHosts(nodes: readonly MeasuredNode[]): void {
    crashes.reset();
    let failing = 0;
    // Versions and states that no node is in now are reported as 0.
    for (const version of seenVersions) versions.set({ bottlerocket_version: version }, 0);
    for (const state of STATES) states.set({ state }, 0);
    for (const { name, shadow } of nodes) {
      if (!shadow?.status) continue;
      const { current_version, current_state, crash_count } = shadow.status;
      if (seenVersions.size < MAX_VERSIONS) seenVersions.add(current_version);
      versions.inc({ bottlerocket_version: seenVersions.has(current_version) ? current_version : OTHER });
      states.inc({ state: current_state });
      if (crash_count > 0 && ++failing <= MAX_NODES) crashes.set({ node: name }, crash_count);
    }
  }

  function seePolicy(policy: string, status: NonNullable<MeasuredPolicy["status"]>): void {
    active.set({ policy }, status.active.length);
    for (const { node, phase, since, seconds } of status.active.slice(0, MAX_NODES)) {
      const started = (parseTimestamp(since) ?? 0) / 1000;
      phases.set({ policy, node, phase }, started);
      deadlines.set({ policy, node, phase }, started + seconds);
    }
    frozen.set({ policy }, status.frozen === undefined ? 0 : 1);
    window.set({ policy }, status.windowOpen ? 1 : 0);
    for (const [reason, count] of Object.entries(status.skipped).slice(0, MAX_KINDS)) skipped.set({ policy, reason }, count);
    for (const { from, to, fromVersion, toVersion, count } of status.transitions.slice(0, MAX_KINDS))
      transitions.inc({ policy, from, to, from_version: fromVersion, to_version: toVersion }, count);
  }

  return {
    seen({ nodes, policies, now }) {
      seeHosts(nodes);
      for (const metric of [active, phases, deadlines, frozen, window, skipped, transitions]) metric.reset();
      for (const { name, status } of policies.slice(0, MAX_POLICIES)) if (status) seePolicy(name, status);
      if (now !== undefined) lastPass.set(now / 1000);
    },
  };
}

/** The same as the samples of a process that shows them for the controller. */
export async function sampleNodeUpdates(seen: MeasuredNodes): Promise<Samples> {
  const registry = createRegistry();
  createNodeUpdateMetrics(registry).seen(seen);
  return new Map(await Promise.all(Object.values(NODE_METRICS).map(async (row) => [row.name, await registry.read(row)] as const)));
}
