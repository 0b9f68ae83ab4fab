/**
 * The connection of a pod by its ServiceAccount, without the client's KubeConfig, which is half the memory of a small
 * process.
 */
import { readFile } from "node:fs/promises";
import https from "node:https";
import { RolloutError } from "../errors.ts";
import type { Connection } from "./connection.ts";

const FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";
const IDLE_SOCKET_MS = 30_000;

/** Rejects with `BadConfiguration` outside a pod. Token and CA are read for each request: the kubelet replaces them. */
export async function loadOwnAccount(
  env: Readonly<Record<string, string | undefined>>,
  folder = FOLDER,
): Promise<Connection> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = env;
  if (!host)
    throw new RolloutError("BadConfiguration", "bad configuration: KUBERNETES_SERVICE_HOST is not set: this is no pod");
  const agent = new https.Agent({ keepAlive: true, timeout: IDLE_SOCKET_MS });
  return {
    server: new URL(`https://${host.includes(":") ? `[${host}]` : host}:${port}`),
    async authorize() {
      const [token, ca] = await Promise.all(["token", "ca.crt"].map((name) => readFile(`${folder}/${name}`, "utf8")));
      return { ca, agent, headers: { authorization: `Bearer ${token?.trim()}` } };
    },
    close: () => agent.destroy(),
  };
}
