/** The hosts of the demonstration, and the agent on each. */
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Log } from "../../../infra/log.ts";
import { createNodeApi } from "../../../reconciler/nodes/agent/call-node-api.ts";
import { dig } from "../../emulator/objects.ts";
import type { Store } from "../../emulator/store.ts";
import { type PlayedHost, playHost } from "../../host/play-host.ts";
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

/** Starts the host of a node and its agent. */
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
  return await playHost({
    host: { version: FROM, offers: TO, ...TIMES },
    agent: { cluster, clock, log, namespace: HOME, nodeName: node, callApi },
    reportBoot: (boot) => reportBoot(store, node, boot),
  });
}
