/**
 * Nodes of a world: hosts, the agent on each, and the node APIs. What runs is the code that their entries call.
 *
 *   agent --socket--> host      agent --HTTPS--> node API --> API server <-- reconciler      (network.ts)
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { composeNodeApi } from "../../../functions/nodes/compose.ts";
import { messageOf } from "../../../infra/errors.ts";
import type { Machine } from "../../../infra/machine.ts";
import { startAgent } from "../../../reconciler/nodes/agent/start.ts";
import { AUDIENCE } from "../../../reconciler/nodes/routes.ts";
import type { Api } from "../../emulator/api.ts";
import { dig, type Draft } from "../../emulator/objects.ts";
import type { Draw } from "../draw.ts";
import { NAMESPACE } from "../names.ts";
import type { Process } from "../process.ts";
import type { Schedule } from "../schedule.ts";
import type { Fault, Shape } from "../shape.ts";
import { createAgentNetwork, type NodeApiServer } from "./network.ts";
import { createNodeHost, type NodeHost } from "./node-host.ts";
import { type FleetNode, fleetOf, type NodesShape, policyObject, POLICIES, TO } from "./shape.ts";
import { add } from "../../builders/objects.ts";

export interface FleetOptions {
  readonly api: Api;
  readonly schedule: Schedule;
  readonly draw: Draw;
  readonly shape: Shape;
  readonly nodes: NodesShape;
  readonly strikes: (fault: Fault, site: string) => boolean;
  readonly startProcess: (kind: string) => Started;
  readonly onProcess: (name: string, text: string) => void;
  readonly onHost: (told: HostTold) => void;
}

export interface Started {
  readonly process: Process;
  readonly machine: Machine;
  readonly env: Readonly<Record<string, string>>;
}

/** What a host does: `asked` by its agent to reboot, or going `down` and coming `up`. */
export interface HostTold {
  readonly node: string;
  readonly what: "asked" | "down" | "up";
}

export interface Fleet {
  readonly hosts: readonly NodeHost[];
  /** The version that the update repository has. */
  readonly offered: () => string;
  readonly offer: (version: string) => void;
  /** No host does wrong any more. */
  readonly calm: () => void;
}

const DEFINITIONS = join(import.meta.dirname, "../../../infra/manifests/node-updates/crds");
const ACCOUNT = "brupop-agent-service-account";
const AGENTS = "brupop-agent";
/** Between the end of a container and its successor. */
const RESTART_MS = 3000;
/** Between the deletion of a Node and that of its pods, and until its kubelet registers it again. */
const COLLECT_MS = 1000;
const REGISTER_MS = 10_000;
/** A projected token is replaced at four fifths of its life. */
const TOKEN_S = 3600;
const RENEW_MS = TOKEN_S * 800;
const SLOW_BOOT_MS = 240_000;
const PLACES = {
  hostSocket: "/run/api.sock",
  bootId: "boot-id",
  token: "token",
  ca: "ca",
  account: "account",
  nodeApi: () => new URL(`https://brupop-apiserver.${NAMESPACE}.svc`),
};

const podOf = (node: string): string => `${AGENTS}-${node}`;

export function createFleet({ api, schedule, draw, shape, nodes, strikes, startProcess, ...on }: FleetOptions): Fleet {
  const { store } = api;
  const servers = new Set<NodeApiServer>();
  const agents = new Map<string, Process>();
  const hosts = new Map<string, NodeHost>();
  let offered = TO;
  const network = createAgentNetwork({
    schedule,
    draw,
    strikes,
    servers: () => [...servers],
    onCall: on.onProcess,
    onReboot: ({ name }) => on.onHost({ node: name, what: "asked" }),
  });

  for (const file of ["bottlerocketshadows.yaml", "nodeupdatepolicies.yaml"])
    store.create(
      "customresourcedefinitions.apiextensions.k8s.io",
      parse(readFileSync(join(DEFINITIONS, file), "utf8")) as Draft,
    );
  for (const { metadata } of store.list("nodes")) store.remove("nodes", undefined, metadata.name);
  add(store, "ServiceAccount", ACCOUNT, { namespace: NAMESPACE });
  const daemons = add(store, "DaemonSet", AGENTS, { namespace: NAMESPACE });
  store.create(POLICIES, policyObject(nodes));
  for (const node of fleetOf(shape.zones, nodes)) hosts.set(node.name, startHost(node));
  for (let i = 0; i < nodes.nodeApis; i++) schedule.after(i, startNodeApi);
  store.subscribe(({ type, resource, object }) => {
    if (type !== "DELETED" || !["nodes", "pods"].includes(resource)) return;
    const host = hosts.get(object.metadata.name.replace(`${AGENTS}-`, ""));
    if (host && resource === "nodes") collect(host);
    else if (host) replaceAgent(host);
  });

  function startHost(node: FleetNode): NodeHost {
    const host: NodeHost = createNodeHost({
      store,
      schedule,
      draw,
      node,
      actionMs: nodes.actionMs,
      rebootMs: () => rebootMs(host),
      skewMs: shape.skewMs === 0 ? 0 : draw.between(-shape.skewMs, shape.skewMs),
      onDown() {
        on.onHost({ node: node.name, what: "down" });
        agents.get(node.name)?.kill();
      },
      onUp() {
        on.onHost({ node: node.name, what: "up" });
        schedule.after(RESTART_MS, () => startOn(host));
      },
    });
    createAgentPod(host);
    schedule.after(draw.below(RESTART_MS), () => startOn(host));
    return host;
  }

  function rebootMs({ model }: NodeHost): number | undefined {
    if (strikes("rollsBack", "host reboot")) model.rollBack(1);
    if (strikes("neverBack", "host reboot")) return undefined;
    return strikes("rebootSlow", "host reboot") ? SLOW_BOOT_MS : nodes.rebootMs;
  }

  function createAgentPod({ name }: NodeHost): void {
    if (store.get("pods", NAMESPACE, podOf(name)) || !store.get("nodes", undefined, name)) return;
    const owner = { apiVersion: "apps/v1", kind: "DaemonSet", name: AGENTS, uid: daemons.metadata.uid };
    add(store, "Pod", podOf(name), {
      namespace: NAMESPACE,
      metadata: { ownerReferences: [{ ...owner, controller: true }] },
      spec: { nodeName: name, serviceAccountName: ACCOUNT, containers: [{ name: "agent", image: "agent" }] },
      status: { phase: "Pending" },
    });
  }

  /** As the DaemonSet's controller does, and the kubelet, also if the container was about to start again. */
  function replaceAgent(host: NodeHost): void {
    agents.get(host.name)?.kill();
    schedule.after(COLLECT_MS, () => createAgentPod(host));
    schedule.after(COLLECT_MS + RESTART_MS, () => startOn(host));
  }

  /** Pods of a Node that is gone go at once; its kubelet registers it again. */
  function collect(host: NodeHost): void {
    schedule.after(COLLECT_MS, () => {
      for (const pod of store.list("pods"))
        if (dig(pod, "spec", "nodeName") === host.name)
          store.remove("pods", pod.metadata.namespace, pod.metadata.name, { gracePeriodSeconds: 0 });
    });
    schedule.after(REGISTER_MS, () => {
      host.register();
      createAgentPod(host);
      startOn(host);
    });
  }

  /** The container of the agent, again and again while its host is up. */
  function startOn(host: NodeHost): void {
    const pod = store.get("pods", NAMESPACE, podOf(host.name));
    if (!host.isUp() || agents.get(host.name)?.isAlive() || !pod) return;
    const { process, machine } = startProcess("agent");
    agents.set(host.name, process);
    on.onProcess(process.name, `runs on ${host.name}`);
    process.onDeath(() => schedule.after(RESTART_MS, () => startOn(host)));
    const env = {
      MY_NODE_NAME: host.name,
      KUBERNETES_NAMESPACE: NAMESPACE,
      EXCLUDE_FROM_LB_WAIT_TIME_IN_SEC: String(nodes.exclusionSeconds),
      LOG_FORMAT: "logfmt",
    };
    const run = { stop: new AbortController().signal, machine: { ...machine, ...mountsOf(process, host) } };
    const end = (text: string): void => {
      on.onProcess(process.name, text);
      process.kill();
    };
    startAgent(env, PLACES, run).then(
      () => end("ends"),
      (error: unknown) => end(`fails: ${messageOf(error)}`),
    );
  }

  /** What the kubelet gives the agent's pod: its token, the boot id, the socket. */
  function mountsOf(process: Process, host: NodeHost): Pick<Machine, "open" | "read"> {
    let token: { readonly text: Promise<string>; readonly at: number } | undefined;
    return {
      open: network.openFor(process, host),
      read(path) {
        if (path === PLACES.bootId) return Promise.resolve(`${host.model.facts().bootId}\n`);
        if (path !== PLACES.token) return Promise.resolve("");
        if (!token || schedule.now() - token.at > RENEW_MS)
          token = { text: tokenOf(podOf(host.name)), at: schedule.now() };
        return token.text;
      },
    };
  }

  async function tokenOf(name: string): Promise<string> {
    const uid = store.get("pods", NAMESPACE, name)?.metadata.uid;
    const request = { audiences: [AUDIENCE], seconds: TOKEN_S, pod: { name, uid } };
    return (await api.tokens.issue(NAMESPACE, ACCOUNT, request)).token;
  }

  function startNodeApi(): void {
    const { process, machine, env } = startProcess("node-api");
    process.onDeath(() => schedule.after(RESTART_MS, startNodeApi));
    void composeNodeApi(env, machine).then(({ routes }) => {
      const server = { process, routes };
      servers.add(server);
      process.onDeath(() => servers.delete(server));
    });
  }

  return {
    hosts: [...hosts.values()],
    offered: () => offered,
    offer(version) {
      offered = version;
      for (const { model } of hosts.values()) model.offer(version);
    },
    calm: () => hosts.forEach(({ model }) => (model.rollBack(0), model.lock(false))),
  };
}
