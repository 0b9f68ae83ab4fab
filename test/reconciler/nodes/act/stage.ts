/**
 * Node updates on the embedded cluster: nodes, the definitions as they are shipped, and agents that report what a host
 * would.
 */
import { readFileSync } from "node:fs";
import type { TestContext } from "node:test";
import { parse } from "yaml";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { createLog } from "../../../../infra/log.ts";
import { createMetrics, type Metrics } from "../../../../infra/metrics/metrics.ts";
import { createNodeUpdates, type NodeUpdateOptions } from "../../../../reconciler/nodes/act/update-nodes.ts";
import { type PolicyStatus, POLICY_NAME, readPolicy } from "../../../../reconciler/nodes/policy.ts";
import {
  MANAGED_LABEL,
  MANAGED_VALUE,
  type ShadowSpec,
  type ShadowStatus,
} from "../../../../reconciler/nodes/shadow.ts";
import { createRecorder } from "../../../../reconciler/report/act/reporter.ts";
import { playAgent } from "../../../emulator/controllers/agent-step.ts";
import { reportNode } from "../../../emulator/controllers/report-node.ts";
import type { KubeObject } from "../../../emulator/store.ts";
import { setStage, type Stage } from "../../stage.ts";
import { add } from "../../../builders/objects.ts";

export const NAMESPACE = "brupop";
const SHADOWS = "bottlerocketshadows.brupop.bottlerocket.aws";
const POLICIES = "nodeupdatepolicies.zonewise.dev";
const CRDS = "customresourcedefinitions.apiextensions.k8s.io";
const FOLDER = new URL("../../../../infra/manifests/node-updates/crds/", import.meta.url);

export interface NodeStage extends Stage {
  /** What Kubernetes was called with since the last call. */
  readonly calls: string[];
  readonly metrics: Metrics;
  readonly cluster: Cluster;
  readonly logged: string[];
  tick(): Promise<boolean>;
  /** A process that starts again. */
  restart(): void;
}

interface StageOptions {
  readonly definitions?: boolean;
}

export function defineNodeUpdates({ emulator: { store } }: Pick<Stage, "emulator">): void {
  for (const file of ["bottlerocketshadows.yaml", "nodeupdatepolicies.yaml"])
    store.create(CRDS, parse(readFileSync(new URL(file, FOLDER), "utf8")) as KubeObject);
}

export async function setNodeStage(options: Partial<NodeUpdateOptions> & StageOptions = {}): Promise<NodeStage> {
  const stage = await setStage();
  const { store } = stage.emulator;
  add(store, "Namespace", NAMESPACE);
  if (options.definitions !== false) defineNodeUpdates(stage);
  const { cluster, calls } = stage.connect();
  const metrics = createMetrics();
  const logged: string[] = [];
  const log = createLog({
    level: "debug",
    format: "json",
    write: (line) => void logged.push(line),
    now: () => new Date(stage.clock.now()),
  });
  const { clock } = stage;
  const create = () =>
    createNodeUpdates({
      clock,
      log,
      metrics,
      namespace: NAMESPACE,
      ownNode: undefined,
      intervalMs: 5000,
      defaultSpec: { maxConcurrent: "1" },
      ...options,
    });
  let update = create();
  const annotations = new Map<string, string>();
  const recorder = createRecorder({ cluster, clock, log, instance: "test" });
  return {
    ...stage,
    cluster,
    calls,
    metrics,
    logged,
    restart: () => void (update = create()),
    tick: async () => {
      const stop = new AbortController().signal;
      const acted = await update({ cluster, fence: { write: () => ({}) }, stop }, { recorder, annotations });
      await recorder.flush();
      return acted;
    },
  };
}

export function label(stage: Stage, name: string, value: string | null = MANAGED_VALUE): void {
  const node = stage.emulator.store.get("nodes", undefined, name);
  if (!node) throw new Error(`no node ${name}`);
  const { [MANAGED_LABEL]: _, ...rest } = node.metadata.labels ?? {};
  const own = { ...rest, "topology.kubernetes.io/zone": "zone-1" };
  const labels = value === null ? own : { ...own, [MANAGED_LABEL]: value };
  stage.emulator.store.update("nodes", { ...node, metadata: { ...node.metadata, labels } });
}

export function createPolicy(stage: Stage, spec: object = {}): void {
  add(stage.emulator.store, "NodeUpdatePolicy", POLICY_NAME, { spec });
}

export const removePolicy = (stage: Stage): void => void stage.emulator.store.remove(POLICIES, undefined, POLICY_NAME);

export function changePolicy(stage: Stage, spec: object): void {
  const policy = stage.emulator.store.get(POLICIES, undefined, POLICY_NAME);
  if (policy) stage.emulator.store.update(POLICIES, { ...policy, spec });
}

export function statusOf(stage: Stage): PolicyStatus {
  const object = stage.emulator.store.get(POLICIES, undefined, POLICY_NAME);
  return readPolicy(object as unknown as Parameters<typeof readPolicy>[0]).status;
}

interface StoredShadow extends KubeObject {
  readonly spec: ShadowSpec;
  readonly status?: ShadowStatus;
}

export const shadowOf = (stage: Stage, node: string): StoredShadow | undefined =>
  stage.emulator.store.get(SHADOWS, NAMESPACE, `brs-${node}`) as StoredShadow | undefined;

export function report(stage: Stage, node: string, status: Partial<ShadowStatus>): void {
  const shadow = shadowOf(stage, node);
  if (!shadow) return;
  const before = shadow.status ?? {
    current_version: "1.0.0",
    target_version: "1.1.0",
    current_state: "Idle",
    crash_count: 0,
  };
  stage.emulator.store.update(SHADOWS, { ...shadow, status: { ...before, ...status } });
}

/** Changes a Node as its kubelet does. */
export function setNode(stage: Stage, name: string, { ready = true, bootId = "boot-1" }): void {
  const node = stage.emulator.store.get("nodes", undefined, name);
  if (!node) throw new Error(`no node ${name}`);
  const status = reportNode(node, { ready: ready ? "True" : "Unknown", bootId, now: stage.clock.now() });
  stage.emulator.store.update("nodes", { ...node, status });
}

/** What an agent and its host do next: one state of an update that goes well. */
export function stepAgent(stage: Stage, node: string): void {
  const shadow = shadowOf(stage, node);
  if (!shadow) return;
  const { spec, status } = shadow;
  const bootId = status?.boot_id ?? "boot-1";
  const version = status?.current_version ?? "1.0.0";
  const found = { spec, status, host: { version, bootId }, target: status?.target_version ?? "1.1.0", cordoned: false };
  const after = playAgent(found, stage.clock.now(), "boot-2");
  if (after.host.bootId !== bootId) setNode(stage, node, { bootId: after.host.bootId });
  if (after.status) stage.emulator.store.update(SHADOWS, { ...shadow, status: after.status });
}

export const NODES = ["node-1", "node-2", "node-3"];

/** Three nodes of one topology zone that are managed and Ready; all ends with the test. */
export async function setFleet(t: TestContext, ...options: Parameters<typeof setNodeStage>): Promise<NodeStage> {
  const stage = await setNodeStage(...options);
  t.after(() => stage.close());
  for (const node of NODES) {
    label(stage, node);
    setNode(stage, node, {});
  }
  return stage;
}

export const statesOf = (stage: Stage): string[] => NODES.map((node) => shadowOf(stage, node)?.spec.state ?? "none");

/** Kind and name of what each Event is about, and its reason. */
export const eventsOf = (stage: Stage): string[] =>
  stage.emulator.store.list("events").map((event) => {
    const { reason, involvedObject } = event as unknown as {
      reason: string;
      involvedObject: { kind: string; name: string };
    };
    return `${involvedObject.kind} ${involvedObject.name} ${reason}`;
  });
