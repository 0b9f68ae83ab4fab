/** The facts for one decision about the nodes, gathered at one moment. */
import type { UpdateNode } from "./node.ts";
import type { ActiveNode, Policy, Workload } from "./policy.ts";

export type GoingNode = Pick<ActiveNode, "node" | "phase" | "zone">;

/** The facts of one node's pods. Gathered only for the nodes that a decision asks for. */
export interface NodeReading {
  /** Why a drain would not succeed now. */
  readonly obstacle?: string | undefined;
  /** Why the node is not fit to be updated. */
  readonly unfit?: string | undefined;
  /** The rollout in progress that forbids a disruption here. */
  readonly rollout?: string | undefined;
  /** Why the work that was here has not come back; only for nodes that are active. */
  readonly missing?: string | undefined;
  /** The controllers of the pods that a drain would evict. */
  readonly workloads: readonly Workload[];
  /** The other nodes that take pods, with their topology zones; undefined if none of its pods has to leave. */
  readonly others?: readonly Pick<UpdateNode, "name" | "zone">[] | undefined;
  /** Why its pods could not all be away at once. */
  readonly oneByOne?: string | undefined;
}

export interface PolicySnapshot {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly policy: Policy;
  /** The managed nodes, and active ones that have lost their label; by name. */
  readonly nodes: readonly UpdateNode[];
  readonly readings: ReadonlyMap<string, NodeReading>;
  /** Nodes whose pods forbade a start a moment ago, by name: they are not read again yet. */
  readonly held?: ReadonlyMap<string, Why>;
  /** The node that this process runs on: it is updated last. */
  readonly ownNode: string | undefined;
}

/** Why a node or a policy does not start; for the policy's status, Events and metrics. */
export const SKIP_REASONS = [
  "PolicyInvalid",
  "Disabled",
  "Frozen",
  "WindowClosed",
  "LimitReached",
  "NotManaged",
  "NodeTerminating",
  "BeingRemoved",
  "ShadowUnreadable",
  "AgentSilent",
  "Recovering",
  "BackOff",
  "Deferred",
  "NodeNotReady",
  "OtherZoneFirst",
  "UnhealthyPods",
  "RolloutInProgress",
  "DrainBlocked",
  "NoPlaceForPods",
] as const;
export type SkipReason = (typeof SKIP_REASONS)[number];

/** Why a node does not start. */
export interface Why {
  readonly reason: SkipReason;
  readonly message: string;
}

export interface Skip extends Why {
  readonly node: string;
}

/** The reasons why an attempt ended without its update. */
export const FAILURE_REASONS = [
  "UpdateFailed",
  "StagingTimeout",
  "HeldTooLong",
  "DrainTimeout",
  "RebootTimeout",
  "ReturnTimeout",
  "HealthTimeout",
  "RecoveryTimeout",
  "NodeGone",
  "NoLongerManaged",
  "StartDropped",
  "TakenOver",
  "Frozen",
] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];
