/** The node API over HTTP against the embedded cluster, and agents' pods with tokens. */
import { createServer, request as open } from "node:http";
import type { IncomingHttpHeaders } from "node:http";
import type { TestContext } from "node:test";
import { createBackgroundTasks, createBodyReader } from "../../../functions/http/rim.ts";
import { serveNodeApi } from "../../../functions/nodes/node-api.ts";
import { systemClock } from "../../../infra/clock.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import type { ShadowSpec, ShadowStatus } from "../../../reconciler/nodes/shadow.ts";
import { MANAGED_LABEL, MANAGED_VALUE, newShadow, shadowName } from "../../../reconciler/nodes/shadow.ts";
import { dig, fieldsOf, type KubeObject, put } from "../../emulator/objects.ts";
import type { Store } from "../../emulator/store.ts";
import { listen } from "../../loopback.ts";
import { defineNodeUpdates } from "../../reconciler/nodes/act/stage.ts";
import { type Entry, keepingLog, setStage, type Stage } from "../stage.ts";
import { add } from "../../builders/objects.ts";

export const NAMESPACE = "brupop-bottlerocket-aws";
const ACCOUNT = "brupop-agent-service-account";
export const SHADOWS = "bottlerocketshadows.brupop.bottlerocket.aws";

export interface NodeAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers: IncomingHttpHeaders;
}

export interface Call {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface NodeStage extends Stage {
  readonly entries: readonly Entry[];
  /** Calls a route as the agent of a node: `PUT /bottlerocket-node-resource`. */
  readonly call: (agent: Agent, route: string, more?: Call) => Promise<NodeAnswer>;
  readonly shadow: (node: string) => KubeObject | undefined;
  readonly node: (name: string) => KubeObject;
}

export interface Agent {
  readonly headers: Readonly<Record<string, string>>;
}

/** The policy that has each node in a slot. */
interface PolicyTraits {
  readonly drain?: object;
  readonly frozen?: object;
}

export const FROZEN: PolicyTraits = {
  frozen: { id: "f1", at: "2026-01-01T00:00:00Z", reason: "RebootTimeout", message: "node-2 is lost" },
};

function addPolicy(store: Store, { drain = {}, frozen }: PolicyTraits): void {
  const known = { nodeUid: "u", from: "1.0.0", to: "1.1.0", bootId: "b", phase: "Draining" };
  const since = "2026-01-01T00:00:00Z";
  const active = store
    .list("nodes")
    .map(({ metadata }) => ({ ...known, node: metadata.name, startedAt: since, since }));
  const policy = add(store, "NodeUpdatePolicy", "default", { spec: { drain } });
  store.update("nodeupdatepolicies.zonewise.dev", { ...policy, status: { active, ...(frozen && { frozen }) } });
}

interface Options {
  /** "none" if no policy has a node in a slot. */
  readonly policy?: PolicyTraits | "none";
}

/** Stops at the end of the test. */
export async function setNodeStage(t: TestContext, { policy = {} }: Options = {}): Promise<NodeStage> {
  const stage = await setStage(t);
  const { store } = stage.emulator;
  defineNodeUpdates(stage);
  for (const node of store.list("nodes"))
    store.update(
      "nodes",
      put(node, ["metadata", "labels"], { ...node.metadata.labels, [MANAGED_LABEL]: MANAGED_VALUE }),
    );
  add(store, "Namespace", NAMESPACE);
  add(store, "ServiceAccount", ACCOUNT, { namespace: NAMESPACE });
  const { log, entries } = keepingLog();
  const metrics = createMetrics();
  const { cluster } = stage;
  if (policy !== "none") addPolicy(store, policy);
  const handlers = serveNodeApi({
    rim: {
      clock: systemClock,
      log,
      metrics: metrics.webhooks,
      tasks: createBackgroundTasks(),
      readBody: createBodyReader(),
      requestTimeoutMs: 10_000,
    },
    cluster,
    namespace: NAMESPACE,
  });
  const server = createServer((request, response) => {
    const handler = handlers.get(request.url ?? "");
    if (handler) void handler(request, response);
    else response.writeHead(404).end();
  });
  const port = await listen(server);
  t.after(() => (server.closeAllConnections(), server.close()));
  return {
    ...stage,
    entries,
    call: (agent, route, more) => send(port, agent, { route, ...more }),
    shadow: (node) => store.get(SHADOWS, NAMESPACE, shadowName(node)),
    node: (name) => store.get("nodes", "", name) as KubeObject,
  };
}

function send(
  port: number,
  agent: Agent,
  { route, body, headers }: Call & { readonly route: string },
): Promise<NodeAnswer> {
  const [method = "", path = ""] = route.split(" ");
  return new Promise((resolve, reject) => {
    const outgoing = open(
      { port, host: "127.0.0.1", method, path, headers: { ...agent.headers, ...headers } },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => (text += chunk));
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, body: parse(text), headers: response.headers }),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

interface AgentTraits {
  readonly namespace?: string;
  readonly audience?: string;
}

/** An agent's pod on the node, with its token. */
export async function playAgent({ emulator, cluster }: Stage, node: string, traits: AgentTraits = {}): Promise<Agent> {
  const { namespace = NAMESPACE, audience = "brupop-apiserver" } = traits;
  const pod = `agent-${node}`;
  const { store } = emulator;
  if (!store.get("serviceaccounts", namespace, ACCOUNT)) add(store, "ServiceAccount", ACCOUNT, { namespace });
  const made = add(store, "Pod", pod, {
    namespace,
    metadata: {
      ownerReferences: [{ apiVersion: "apps/v1", kind: "DaemonSet", name: "d", uid: "d", controller: true }],
    },
    spec: { nodeName: node, serviceAccountName: ACCOUNT, containers: [] },
    status: { phase: "Running" },
  });
  const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: pod, uid: made.metadata.uid };
  const resource = { group: "", version: "v1", plural: "serviceaccounts" };
  const place = { namespace, name: ACCOUNT, subresource: "token" as "eviction" };
  const body = { spec: { audiences: [audience], boundObjectRef } };
  const token = String(dig(await cluster.create<unknown>(resource, { ...place, body }), "status", "token"));
  return { headers: headersOf(node, store.get("nodes", "", node)?.metadata.uid ?? "", token) };
}

export function headersOf(node: string, uid: string, token: string): Agent["headers"] {
  return { BrupopNodeName: node, BrupopNodeUid: uid, BrupopK8sAuthToken: token };
}

const STATUS: ShadowStatus = {
  current_version: "1.0.0",
  target_version: "1.1.0",
  current_state: "StagedAndPerformedUpdate",
  crash_count: 0,
};

/** Stores a shadow whose node is to reboot, unless told otherwise. */
export function createShadow(
  { emulator: { store } }: Stage,
  node: string,
  { spec, status }: { readonly spec?: Partial<ShadowSpec>; readonly status?: Partial<ShadowStatus> | null } = {},
): KubeObject {
  const uid = store.get("nodes", "", node)?.metadata.uid ?? "";
  const draft = newShadow({ name: node, uid }, NAMESPACE);
  return store.create(SHADOWS, {
    ...draft,
    apiVersion: "brupop.bottlerocket.aws/v2",
    kind: "BottlerocketShadow",
    metadata: fieldsOf(draft.metadata),
    spec: { ...draft.spec, state: "RebootedIntoUpdate", version: "1.1.0", ...spec },
    ...(status !== null && { status: { ...STATUS, ...status } }),
  });
}
