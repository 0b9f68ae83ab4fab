/** The hosts of the demonstration, and the agent on each. */
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Log } from "../../../infra/log.ts";
import { createNodeApi } from "../../../reconciler/nodes/agent/call-node-api.ts";
import { createHostApi } from "../../../reconciler/nodes/agent/host-api.ts";
import { runAgent } from "../../../reconciler/nodes/agent/loop.ts";
import { dig } from "../../emulator/objects.ts";
import type { Store } from "../../emulator/store.ts";
import { type Host, startHost } from "../../host/host-server.ts";
import { AGENT, agentPod, HOME, reportBoot, uidOf } from "./cluster.ts";
import type { DemoNodeApi } from "./node-api.ts";

export const FROM = "1.0.0";
export const TO = "1.1.0";

export interface HostOptions {
  readonly store: Store;
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly api: DemoNodeApi;
}

/** Milliseconds, so that a viewer can follow. */
const TIMES = { actionMs: { prepare: 1200, activate: 400 }, rebootMs: 2000 };

interface PlayedHost {
  readonly host: Host;
  /** Ends both. */
  readonly stop: () => Promise<void>;
}

/**
 * Starts the host of a node, and the agent on it: the loop that the DaemonSet runs, ended by each reboot of its host.
 * The kubelet reports each boot.
 */
export async function playNode(node: string, { store, cluster, clock, log, api }: HostOptions): Promise<PlayedHost> {
  /** Bound to the agent's pod, as the kubelet projects it. */
  async function readToken(): Promise<string> {
    const serviceAccounts = { group: "", version: "v1", plural: "serviceaccounts" };
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", ...agentPod(store, node) };
    const body = { spec: { audiences: ["brupop-apiserver"], boundObjectRef } };
    const place = { namespace: HOME, name: AGENT, subresource: "token" as "eviction" };
    return String(dig(await cluster.create<unknown>(serviceAccounts, { ...place, body }), "status", "token"));
  }
  const callApi = createNodeApi({
    url: api.url,
    node: { name: node, uid: uidOf(store, node) },
    readToken,
    readCa: async () => api.caPem,
  });
  let endAgent = async (): Promise<void> => {};
  const host = await startHost({
    version: FROM,
    offers: TO,
    ...TIMES,
    onReboot(phase, { facts }) {
      if (phase === "down") void endAgent();
      reportBoot(store, node, { ready: phase === "up", bootId: facts().bootId });
      if (phase === "up") startAgent();
    },
  });

  function startAgent(): void {
    const stop = new AbortController();
    const tools = {
      cluster,
      clock,
      log,
      namespace: HOME,
      nodeName: node,
      callApi,
      stop: stop.signal,
      host: createHostApi(host.socketPath),
      readBootId: async () => host.facts().bootId,
      pollMs: 100,
      actionMs: 60_000,
      refreshMs: 60_000,
      rebootMs: 60_000,
      exclusionMs: 0,
      memory: {},
    };
    const ended = runAgent(tools, { pauseMs: 300, idleMs: 2000 });
    endAgent = async () => (stop.abort(), await ended);
  }

  reportBoot(store, node, { ready: true, bootId: host.facts().bootId });
  startAgent();
  return {
    host,
    async stop() {
      await endAgent();
      await host.stop();
    },
  };
}
