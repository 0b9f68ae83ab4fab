/** Where the API server is and how to prove who we are; the only importer of client-node's values. */
import type { OutgoingHttpHeaders } from "node:http";
import https from "node:https";
import type { KubeConfig } from "@kubernetes/client-node";
import { RolloutError } from "../errors.ts";

/** Sockets that idle longer are closed by us, before the API server (90 s) or a load balancer (60 s) does. */
const IDLE_SOCKET_MS = 30_000;

/** What a request needs to be let in. */
export interface Credentials extends https.RequestOptions {
  headers?: OutgoingHttpHeaders;
}

export interface Connection {
  readonly server: URL;
  /** Headers, TLS material and agent of the next request. Asked anew for each: tokens, certificates and exec credentials rotate. */
  readonly authorize: () => Promise<Credentials>;
  /** Closes idle connections. */
  close(): void;
}

/** What to read; the first that is set wins, and with none of them it is the pod's own ServiceAccount. */
export interface ConnectionSource {
  /** One kubeconfig file, its server replaced by `apiUrl`. */
  readonly explicit?: { readonly apiUrl: string; readonly configFile: string } | undefined;
  /** Value of KUBECONFIG: one kubeconfig file or several, separated by colons. */
  readonly kubeconfig?: string | undefined;
  /** Directory in which the ServiceAccount's /var/run/secrets lies; / when left out. */
  readonly root?: string | undefined;
}

/** Reads the configuration; rejects with `BadConfiguration` when there is none or it cannot be used. */
export async function loadConnection(source: ConnectionSource): Promise<Connection> {
  const module = await import("@kubernetes/client-node/dist/config.js");
  try {
    return openConnection(readKubeConfig(new module.KubeConfig(), () => new module.KubeConfig(), source));
  } catch (error) {
    const from = source.explicit?.configFile ?? source.kubeconfig ?? "the pod's ServiceAccount";
    throw new RolloutError("BadConfiguration", `no usable Kubernetes configuration in ${from}: ${String(error)}`, { cause: error });
  }
}

function readKubeConfig(config: KubeConfig, another: () => KubeConfig, { explicit, kubeconfig, root }: ConnectionSource): KubeConfig {
  if (explicit) {
    config.loadFromFile(explicit.configFile);
    const cluster = config.getCurrentCluster();
    if (cluster) Object.assign(cluster, { server: explicit.apiUrl });
    return config;
  }
  if (kubeconfig) {
    const [first = "", ...rest] = kubeconfig.split(":").filter((file) => file !== "");
    config.loadFromFile(first);
    for (const file of rest) {
      const next = another();
      next.loadFromFile(file);
      config.mergeConfig(next, true);
    }
    return config;
  }
  config.loadFromCluster(root);
  return config;
}

function openConnection(config: KubeConfig): Connection {
  const cluster = config.getCurrentCluster();
  if (!cluster) throw new Error(`context ${JSON.stringify(config.getCurrentContext())} names no cluster`);
  if (!URL.canParse(cluster.server)) throw new Error(`its server is ${cluster.server}; outside a cluster, KUBECONFIG has to be set`);
  const server = new URL(cluster.server);
  const agent = new https.Agent({ keepAlive: true, timeout: IDLE_SOCKET_MS });
  return {
    server,
    async authorize() {
      const options: Credentials = {};
      try {
        await config.applyToHTTPSOptions(options);
      } catch (error) {
        throw new RolloutError("Unauthorized", `no credentials: ${String(error)}`, { cause: error });
      }
      // client-node's own agent opens a connection a request; it stays where it knows the way through a proxy.
      return cluster.proxyUrl || server.protocol !== "https:" ? options : { ...options, agent };
    },
    close: () => agent.destroy(),
  };
}
