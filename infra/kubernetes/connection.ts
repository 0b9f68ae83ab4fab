/** Finds the API server and our credentials; the only module that imports values of client-node. */
import { existsSync } from "node:fs";
import type { OutgoingHttpHeaders } from "node:http";
import https from "node:https";
import type { KubeConfig } from "@kubernetes/client-node";
import { RolloutError } from "../errors.ts";
import type { OpenRequest } from "../http.ts";
import { ACCOUNT_FOLDER, IDLE_SOCKET_MS, loadOwnAccount } from "./own-account.ts";

interface Credentials extends https.RequestOptions {
  headers?: OutgoingHttpHeaders;
}

export interface Connection {
  readonly server: URL;
  /** The namespace of the kubeconfig's context; undefined if it names none. */
  readonly namespace?: string | undefined;
  /**
   * Headers, TLS material and agent of the next request. Called for each request, as tokens, certificates and exec
   * credentials rotate.
   */
  readonly authorize: () => Promise<Credentials>;
  /** Opens a request to the server; over HTTP or HTTPS by default. */
  readonly open?: OpenRequest;
  close(): void;
}

/** The source of the configuration; the first field that is set wins, otherwise the pod's own ServiceAccount. */
export interface ConnectionSource {
  /** One kubeconfig file, its server replaced by `apiUrl`. */
  readonly explicit?: { readonly apiUrl: string; readonly configFile: string } | undefined;
  /** Value of KUBECONFIG: one kubeconfig file or several, separated by colons. */
  readonly kubeconfig?: string | undefined;
  /** Directory that contains the ServiceAccount's /var/run/secrets; / by default. */
  readonly root?: string | undefined;
  /** A context of the kubeconfig; its current one by default. */
  readonly context?: string | undefined;
  /** The user and the groups that every request impersonates. */
  readonly impersonate?: Impersonation | undefined;
}

interface Impersonation {
  readonly user: string;
  readonly groups: readonly string[];
}

/** Reads the configuration; rejects with `BadConfiguration` if it is missing or unusable. */
export async function loadConnection(source: ConnectionSource): Promise<Connection> {
  const { explicit, kubeconfig, context, impersonate, root = "" } = source;
  try {
    if (explicit || kubeconfig) return await openKubeConfig(source);
    const connection = loadOwnAccount(process.env, `${root}${ACCOUNT_FOLDER}`);
    if (context !== undefined) throw new Error(`there is no context ${JSON.stringify(context)}, as no file is named`);
    return { ...connection, authorize: async () => actAs(await connection.authorize(), impersonate) };
  } catch (error) {
    if (error instanceof RolloutError) throw error;
    const from = explicit?.configFile ?? kubeconfig ?? "the pod's ServiceAccount";
    throw new RolloutError("BadConfiguration", `no usable Kubernetes configuration in ${from}: ${String(error)}`, {
      cause: error,
    });
  }
}

async function openKubeConfig({
  explicit,
  kubeconfig = "",
  context,
  impersonate,
}: ConnectionSource): Promise<Connection> {
  const { KubeConfig } = await import("@kubernetes/client-node/dist/config.js");
  const config = new KubeConfig();
  if (explicit) {
    config.loadFromFile(explicit.configFile);
    const cluster = config.getCurrentCluster();
    if (cluster) Object.assign(cluster, { server: explicit.apiUrl });
  } else mergeFiles(config, () => new KubeConfig(), kubeconfig.split(":"));
  if (context !== undefined) chooseContext(config, context);
  return openConnection(config, impersonate);
}

/**
 * Merges as kubectl does: a missing file is left out, and of several settings of one name the first wins. Throws if all
 * files are missing.
 */
function mergeFiles(config: KubeConfig, another: () => KubeConfig, files: readonly string[]): void {
  const found = files.filter((file) => existsSync(file));
  const all = (found.length > 0 ? found : files.slice(0, 1)).map((file) => {
    const one = another();
    one.loadFromFile(file);
    return one;
  });
  config.loadFromOptions({
    clusters: firstByName(all.flatMap((one) => one.getClusters())),
    users: firstByName(all.flatMap((one) => one.getUsers())),
    contexts: firstByName(all.flatMap((one) => one.getContexts())),
    currentContext: all.map((one) => one.getCurrentContext()).find((name) => name),
  });
}

function firstByName<T extends { readonly name: string }>(items: readonly T[]): T[] {
  return items.filter(({ name }, i) => items.findIndex((one) => one.name === name) === i);
}

function chooseContext(config: KubeConfig, name: string): void {
  const names = config.getContexts().map((context) => context.name);
  if (!names.includes(name)) throw new Error(`there is no context ${JSON.stringify(name)}, only ${names.join(", ")}`);
  config.setCurrentContext(name);
}

function openConnection(config: KubeConfig, impersonate?: Impersonation): Connection {
  const cluster = config.getCurrentCluster();
  if (!cluster) throw new Error(`context ${JSON.stringify(config.getCurrentContext() ?? "")} names no cluster`);
  if (!URL.canParse(cluster.server)) throw new Error(`its server ${JSON.stringify(cluster.server)} is not a URL`);
  const server = new URL(cluster.server);
  const agent = new https.Agent({ keepAlive: true, timeout: IDLE_SOCKET_MS });
  const namespace = config.getContextObject(config.getCurrentContext())?.namespace;
  return {
    server,
    namespace,
    async authorize() {
      const options: Credentials = {};
      try {
        await config.applyToHTTPSOptions(options);
      } catch (error) {
        throw new RolloutError("Unauthorized", `no credentials: ${String(error)}`, { cause: error });
      }
      // client-node's own agent opens a connection per request; we keep it only if it handles a proxy.
      const ours = cluster.proxyUrl || server.protocol !== "https:" ? options : { ...options, agent };
      return actAs(ours, impersonate);
    },
    close: () => agent.destroy(),
  };
}

function actAs(credentials: Credentials, impersonate: Impersonation | undefined): Credentials {
  if (!impersonate) return credentials;
  const { user, groups } = impersonate;
  const headers = { ...credentials.headers, "Impersonate-User": user, "Impersonate-Group": [...groups] };
  return { ...credentials, headers };
}
