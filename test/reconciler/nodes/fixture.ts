/** Builders of the values that the rules of node updates read. */
import { DEFAULT_SPEC, type ShadowSpec, type ShadowStatus, type State } from "../../../reconciler/nodes/shadow.ts";
import type { Shadow, UpdateNode } from "../../../reconciler/nodes/node.ts";
import type { PodObject } from "../../../infra/kubernetes/resources.ts";
import {
  type ActiveNode,
  NO_STATUS,
  type Policy,
  type PolicyStatus,
  readPolicy,
} from "../../../reconciler/nodes/policy.ts";
import type { NodePlan } from "../../../reconciler/nodes/plan-pass.ts";
import type { NodeReading, PolicySnapshot } from "../../../reconciler/nodes/snapshot.ts";

export const NOW = Date.parse("2026-06-01T12:00:00Z");
export const at = (ms: number): string => `${new Date(NOW + ms).toISOString().slice(0, 19)}Z`;
export const MINUTE = 60_000;

export const FREE: NodeReading = { workloads: [] };

export function status(overrides: Partial<ShadowStatus> = {}): ShadowStatus {
  return { current_version: "1.0.0", target_version: "1.1.0", current_state: "Idle", crash_count: 0, ...overrides };
}

export function shadow(
  name: string,
  spec: Partial<ShadowSpec> = {},
  reported: Partial<ShadowStatus> | "none" = {},
): Shadow {
  return {
    namespace: "brupop",
    name: `brs-${name}`,
    uid: `shadow-${name}`,
    resourceVersion: "1",
    terminating: false,
    owner: { name, uid: `uid-${name}` },
    spec: { ...DEFAULT_SPEC, ...spec },
    status: reported === "none" ? undefined : status(reported),
  };
}

export function node(name: string, overrides: Partial<UpdateNode> = {}): UpdateNode {
  return {
    name,
    uid: `uid-${name}`,
    resourceVersion: "1",
    annotations: {},
    managed: true,
    zone: "",
    ready: true,
    readySince: NOW - 60 * MINUTE,
    bootId: "boot-1",
    terminating: false,
    removedBy: undefined,
    unschedulable: false,
    cordonedBy: undefined,
    protectedBy: undefined,
    shadow: shadow(name),
    ...overrides,
  };
}

/** A node in these states, on its way to 1.1.0. */
export function busyNode(
  name: string,
  wanted: State,
  reported: State,
  overrides: { readonly node?: Partial<UpdateNode>; readonly status?: Partial<ShadowStatus> } = {},
): UpdateNode {
  const spec = { state: wanted, version: "1.1.0", state_transition_timestamp: at(-MINUTE) };
  return node(name, {
    shadow: shadow(name, spec, { current_state: reported, ...overrides.status }),
    ...overrides.node,
  });
}

export function entry(name: string, overrides: Partial<ActiveNode> = {}): ActiveNode {
  return {
    node: name,
    nodeUid: `uid-${name}`,
    from: "1.0.0",
    to: "1.1.0",
    bootId: "boot-1",
    startedAt: at(-MINUTE),
    phase: "Staging",
    since: at(-MINUTE),
    ...overrides,
  };
}

export function policy(spec: object = {}, status: Partial<PolicyStatus> = {}): Policy {
  const metadata = { name: "default", uid: "policy-uid", resourceVersion: "7", generation: 1 };
  return readPolicy({ metadata, spec, status: { ...NO_STATUS, ...status } });
}

export function snapshot(nodes: readonly UpdateNode[], overrides: Partial<PolicySnapshot> = {}): PolicySnapshot {
  const readings = new Map(nodes.map(({ name }) => [name, FREE]));
  return { now: NOW, policy: policy(), nodes, readings, ownNode: undefined, ...overrides };
}

/** The nodes that a pass starts. */
export const startedBy = ({ status: { active } }: NodePlan): string[] =>
  active.filter(({ phase }) => phase === "Starting").map(({ node: name }) => name);

interface PodOverrides {
  readonly ready?: boolean;
  readonly owner?: string;
  readonly kind?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly phase?: string;
  readonly waiting?: string;
  readonly mirror?: boolean;
}

export function pod(
  name: string,
  { ready = true, owner = "rs-uid", kind = "ReplicaSet", phase = "Running", ...rest }: PodOverrides = {},
): PodObject {
  return {
    metadata: {
      name,
      namespace: "shop",
      uid: `pod-${name}`,
      resourceVersion: "1",
      labels: rest.labels ?? {},
      annotations: rest.mirror ? { "kubernetes.io/config.mirror": "x" } : {},
      ownerReferences:
        kind === "" ? [] : [{ apiVersion: "apps/v1", kind, name: `${kind}-x`, uid: owner, controller: true }],
    },
    status: {
      phase,
      containerStatuses: [
        {
          ready,
          state: rest.waiting ? { waiting: { reason: rest.waiting } } : { running: { startedAt: at(-MINUTE) } },
        },
      ],
    },
  };
}
