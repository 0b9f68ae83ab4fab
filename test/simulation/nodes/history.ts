/** A history for tests of oracles of nodes: a store, a clock, and the objects in it. */
import { CORDONED_BY, MANAGED_LABEL, MANAGED_VALUE } from "../../../reconciler/nodes/shadow.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";
import { createFacts, type Facts } from "./facts.ts";
import { LEFT_OUT, POLICIES, POLICY, ZONE_LABEL } from "./shape.ts";

const objectOf = (name: string, fields: object, metadata: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Any",
  metadata: { name, uid: name, resourceVersion: "1", creationTimestamp: "", namespace: NAMESPACE, ...metadata },
  ...fields,
});

interface NodeFields {
  readonly ready?: boolean;
  readonly ours?: boolean;
  readonly cordoned?: boolean;
  readonly managed?: boolean;
  readonly taints?: readonly object[];
  readonly boot?: string;
}

/** `node-a-1` is in zone a. */
export function node(name: string, fields: NodeFields = {}): KubeObject {
  const { ready = true, ours = false, cordoned = ours, managed = true, taints = [], boot = "1" } = fields;
  const labels = {
    [ZONE_LABEL]: name.slice(0, -2),
    [LEFT_OUT]: "false",
    ...(managed && { [MANAGED_LABEL]: MANAGED_VALUE }),
  };
  const conditions = [{ type: "Ready", status: ready ? "True" : "False" }];
  return objectOf(
    name,
    { spec: { ...(cordoned && { unschedulable: true }), taints }, status: { conditions, nodeInfo: { bootID: boot } } },
    { labels, annotations: ours ? { [CORDONED_BY]: "x" } : {} },
  );
}

export const shadow = (of: string, state: string, status: object = {}): KubeObject =>
  objectOf(`brs-${of}`, { spec: { state }, status });

export const pod = (name: string, on: string, ready = true): KubeObject =>
  objectOf(name, {
    spec: { nodeName: on },
    status: { phase: "Running", conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
  });

export const zone = (name: string, replicas: number): KubeObject => objectOf(name, { spec: { replicas } });

export const entry = (of: string, phase: string, more: object = {}): object => ({
  node: of,
  nodeUid: of,
  startedAt: "x",
  bootId: "1",
  zone: of.slice(0, -2),
  phase,
  ...more,
});

export const policy = (status: object = {}, spec: object = {}, name = POLICY): KubeObject =>
  objectOf(name, { spec: { maxConcurrent: 1, zonesInOrder: true, nodeSelector: {}, ...spec }, status });

export interface History {
  readonly facts: Facts;
  readonly now: () => number;
  readonly wait: (seconds: number) => void;
  readonly store: {
    readonly get: (resource: string, namespace: string | undefined, name: string) => KubeObject | undefined;
    readonly list: (resource: string) => readonly KubeObject[];
  };
  readonly put: (resource: string, object: KubeObject, by?: Caller) => void;
  readonly remove: (resource: string, object: KubeObject, by?: Caller) => void;
}

/** `onEvent` is told of each change. */
export function createHistory(onEvent: (event: StoreEvent, by: Caller | undefined) => void): History {
  const objects = new Map<string, KubeObject>();
  let now = 1_000_000_000;
  const facts = createFacts(() => now);
  const tell = (event: StoreEvent, by: Caller | undefined): void => {
    facts.onEvent(event);
    onEvent(event, by);
  };
  return {
    facts,
    now: () => now,
    wait: (seconds) => void (now += seconds * 1000),
    store: {
      get: (resource, _, name) => objects.get(`${resource}/${name}`),
      list: (resource) => [...objects].flatMap(([key, one]) => (key.startsWith(`${resource}/`) ? [one] : [])),
    },
    put(resource, object, by) {
      const key = `${resource}/${object.metadata.name}`;
      const previous = objects.get(key);
      objects.set(key, object);
      tell(previous ? { type: "MODIFIED", resource, object, previous } : { type: "ADDED", resource, object }, by);
    },
    remove(resource, object, by) {
      objects.delete(`${resource}/${object.metadata.name}`);
      tell({ type: "DELETED", resource, object }, by);
    },
  };
}

/** The nodes, pods and zones that histories begin with, and their policy. */
export function begin({ put, wait }: History): void {
  for (const name of ["node-a-1", "node-a-2", "node-b-1"]) put("nodes", node(name));
  for (const name of ["ingester-zone-a", "ingester-zone-b"]) put("statefulsets.apps", zone(name, 1));
  for (const [name, on] of [
    ["ingester-zone-a-0", "node-a-1"],
    ["ingester-zone-b-0", "node-b-1"],
  ] as const) {
    put("pods", pod(name, on));
  }
  put(POLICIES, policy());
  wait(60);
}
