/**
 * A campaign on the cluster: simulated hosts behind simulated nodes, their agents as loops in this process,
 * zone-replicated StatefulSets on them.
 */
import assert from "node:assert/strict";
import { connectCluster } from "../../../infra/kubernetes/connect-cluster.ts";
import { loadConnection } from "../../../infra/kubernetes/connection.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { systemClock } from "../../../infra/clock.ts";
import { createLog } from "../../../infra/log.ts";
import type { CustomObject } from "../../../infra/kubernetes/custom-resources.ts";
import type { Node } from "../../../infra/kubernetes/resources.ts";
import type { CallNodeApi } from "../../../reconciler/nodes/agent/call-node-api.ts";
import { POLICY_NAME } from "../../../reconciler/nodes/policy.ts";
import type { ShadowSpec, ShadowStatus } from "../../../reconciler/nodes/shadow.ts";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type PlayedHost, playHost } from "../../host/play-host.ts";
import { buildKubeconfig } from "../stage/access.ts";
import type { Admin } from "../stage/client.ts";
import { follow } from "../stage/follow.ts";
import { AGENT, type NodeClusterStage, TEST_LABEL } from "./node-stage.ts";
import { reportNode } from "../../emulator/controllers/report-node.ts";
import type { OpenStage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import { buildZone, type ZoneOptions } from "../stage/zones.ts";
import { make } from "../../builders/objects.ts";

const FROM = "1.0.0";
export const TO = "1.1.0";

export interface PlayedNode extends PlayedHost {
  readonly node: Node;
}

interface AgentPod {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly spec: { readonly nodeName?: string };
}

/** The kubelet's report of a boot. */
async function reportBoot(
  { call }: Admin,
  name: string,
  { ready, bootId }: { readonly ready: boolean; readonly bootId: string },
): Promise<void> {
  const status = reportNode(undefined, { ready: ready ? "True" : "False", bootId, now: Date.now() });
  await call("PATCH", `/api/v1/nodes/${name}/status`, { status });
}

async function untilAgentPod({ admin, namespace }: NodeClusterStage, node: string): Promise<AgentPod["metadata"]> {
  let pod: AgentPod | undefined;
  await until(`an agent's pod is on ${node}`, async () => {
    const { items } = await admin.call<{ items: AgentPod[] }>("GET", `/api/v1/namespaces/${namespace}/pods`);
    pod = items.find(({ spec, metadata }) => spec.nodeName === node && metadata.name.startsWith("brupop-agent"));
    return pod !== undefined;
  });
  return pod?.metadata ?? assert.fail(node);
}

/** Plays hosts, kubelets and agents of all nodes of the stage. */
export async function playNodes(stage: NodeClusterStage): Promise<readonly PlayedNode[]> {
  const path = join(stage.folder, "agent-kubeconfig");
  await writeFile(path, JSON.stringify(await buildKubeconfig(stage.admin, stage.namespace, AGENT)), { mode: 0o600 });
  const cluster = connectCluster(await loadConnection({ kubeconfig: path }), { timeoutMs: 60_000 });
  return await Promise.all(stage.nodes.map((node) => playNode(stage, node, cluster)));
}

/** The API asks for 2 to 5 s between two rounds of a drain, for the sake of large fleets. */
const SOONER_MS = 1000;

const askSooner =
  (call: CallNodeApi): CallNodeApi =>
  async (...request) => {
    const { retryAfterMs, ...answer } = await call(...request);
    return { ...answer, retryAfterMs: retryAfterMs && Math.min(retryAfterMs, SOONER_MS) };
  };

async function playNode(stage: NodeClusterStage, node: Node, cluster: Cluster): Promise<PlayedNode> {
  const { admin, namespace } = stage;
  const name = node.metadata?.name ?? "";
  const pod = await untilAgentPod(stage, name);
  // The kubelet's file: one token for its hour.
  const token = await stage.requestToken({ pod });
  const played = await playHost({
    host: { version: FROM, offers: TO, rebootMs: 300 },
    agent: {
      cluster,
      clock: systemClock,
      log: createLog({ level: "error", write: (line) => void process.stderr.write(line), now: () => new Date() }),
      namespace,
      nodeName: name,
      callApi: askSooner(stage.callAs(node, async () => token)),
    },
    reportBoot: (boot) => reportBoot(admin, name, boot),
  });
  return { ...played, node };
}

/** Creates one StatefulSet in each zone of the stage, on its nodes; resolves once all pods are ready. */
export async function createZones(stage: OpenStage, zones: readonly ZoneOptions[]): Promise<void> {
  const path = `/apis/apps/v1/namespaces/${stage.namespace}/statefulsets`;
  for (const [index, zone] of zones.entries()) {
    const set = buildZone(zone);
    const nodeSelector = {
      [TEST_LABEL]: stage.namespace,
      "topology.kubernetes.io/zone": `${stage.namespace}-${"abc"[index]}`,
    };
    Object.assign(set.spec?.template.spec ?? {}, { nodeSelector });
    await stage.admin.call("POST", path, set);
  }
  await stage.done("app:1", zones);
}

export interface ShadowView {
  readonly name: string;
  readonly spec: ShadowSpec;
  readonly status: ShadowStatus | undefined;
}

/** Resolves once they are known; `onChange` gets them all, after each change, until `signal` is aborted. */
export async function followShadows(
  { admin, namespace }: NodeClusterStage,
  signal: AbortSignal,
  onChange: (shadows: readonly ShadowView[]) => void,
): Promise<void> {
  const path = `/apis/brupop.bottlerocket.aws/v2/namespaces/${namespace}/bottlerocketshadows`;
  const shadows = new Map<string, ShadowView>();
  await follow(admin, path, signal, (type, object) => {
    const { metadata, spec, status } = object as CustomObject;
    const { name = "" } = metadata;
    if (type === "DELETED") shadows.delete(name);
    else
      shadows.set(name, {
        name,
        spec: spec as ShadowSpec,
        status: (status ?? undefined) as ShadowStatus | undefined,
      });
    onChange([...shadows.values()]);
  });
}

export const buildPolicy = (spec: object): object =>
  make("NodeUpdatePolicy", POLICY_NAME, { spec: { health: { minReadySeconds: 0, timeoutSeconds: 300 }, ...spec } });
