/**
 * The connection of a pod by its ServiceAccount, without the client's KubeConfig, which takes a quarter of the CPU of a
 * start, and 8 MB.
 */
import { readFileSync } from "node:fs";
import https from "node:https";
import { RolloutError } from "../errors.ts";

export const ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Milliseconds after which we close an idle socket, before the API server (90 s) or a load balancer (60 s) does. */
export const IDLE_SOCKET_MS = 30_000;

/**
 * Throws `BadConfiguration` outside a pod. Token and CA are read for each request, as the kubelet replaces them; in place,
 * as they lie in memory.
 */
export function loadOwnAccount(env: Readonly<Record<string, string | undefined>>, folder = ACCOUNT_FOLDER) {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = env;
  if (!host)
    throw new RolloutError("BadConfiguration", "there is no kubeconfig, and this process does not run in a pod");
  const agent = new https.Agent({ keepAlive: true, timeout: IDLE_SOCKET_MS });
  const read = (name: string): string => readFileSync(`${folder}/${name}`, "utf8");
  return {
    server: new URL(`https://${host.includes(":") ? `[${host}]` : host}:${port}`),
    namespace: readNamespace(read),
    async authorize() {
      try {
        return { ca: read("ca.crt"), agent, headers: { authorization: `Bearer ${read("token").trim()}` } };
      } catch (error) {
        throw new RolloutError("Unauthorized", `no credentials: ${String(error)}`, { cause: error });
      }
    },
    close: () => agent.destroy(),
  };
}

/** A ServiceAccount that is mounted by hand may have no namespace. */
function readNamespace(read: (name: string) => string): string | undefined {
  try {
    return read("namespace");
  } catch {
    return undefined;
  }
}
