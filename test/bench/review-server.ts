/** The webhook server as it ships, in a process of its own, for loads of `review-load.ts`. */
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { certify } from "../certify.ts";
import { freePort } from "../loopback.ts";
import { end, MALLOC_ENV } from "./process.ts";
import { firstAnswer, KUBECONFIG, NAME, type Target } from "./review-load.ts";

export interface ReviewServer {
  readonly pid: number;
  readonly target: Target;
  /** The port of its metrics. */
  readonly metrics: number;
  /** Ends it, as a kubelet would. */
  readonly end: () => Promise<void>;
}

/** Another program than Node.js, and its arguments for what our servers get as variables. */
export interface Program {
  readonly command: string;
  readonly args: (variables: Readonly<Record<string, string>>) => readonly string[];
}

/**
 * Starts a server, with Node's arguments, of which the last is its script, or another program; resolves with its first
 * answer to the request.
 */
export type StartServer = (program: readonly string[] | Program, request: string) => Promise<ReviewServer>;

/** Writes the servers' certificate, and the kubeconfig that all get, into `scratch`. */
export async function prepareServers(scratch: string, kubeconfig = KUBECONFIG): Promise<StartServer> {
  const { caPem, certPem, keyPem } = await certify(NAME);
  const files = { crt: certPem, key: keyPem, kubeconfig };
  const path = (name: keyof typeof files): string => join(scratch, `review-server.${name}`);
  await Promise.all(Object.entries(files).map(([name, text]) => writeFile(path(name as keyof typeof files), text)));
  return async (program, request) => {
    const target = { port: await freePort(), ca: caPem };
    const metrics = await freePort();
    const variables = {
      KUBERNETES_NAMESPACE: "default",
      SERVER_TLS_CERT_FILE: path("crt"),
      SERVER_TLS_KEY_FILE: path("key"),
      SERVER_TLS_PORT: String(target.port),
      SERVER_PORT: String(metrics),
    };
    const env = {
      PATH: process.env["PATH"],
      ...variables,
      KUBECONFIG: path("kubeconfig"),
      SERVER_ADDRESS: "127.0.0.1",
      NODE_COMPILE_CACHE: join(scratch, "review-server-cache"),
      ...MALLOC_ENV,
    };
    const { command, args } =
      "command" in program
        ? { command: program.command, args: program.args({ ...variables, ...placeOf(path("kubeconfig"), kubeconfig) }) }
        : { command: process.execPath, args: program };
    const child = spawn(command, args, {
      env: command === process.execPath ? env : { PATH: env.PATH },
      stdio: ["ignore", "ignore", "inherit"],
    });
    const early = Promise.withResolvers<never>();
    early.promise.catch(() => {});
    child.once("exit", (code) => early.reject(new Error(`${[command, ...args].join(" ")} ended with ${code}`)));
    await Promise.race([firstAnswer(target, request), early.promise]);
    return { pid: child.pid ?? 0, target, metrics, end: () => end(child) };
  };
}

/** Where the API server is, for a program that reads no KUBECONFIG. */
export function placeOf(file: string, text: string): Record<string, string> {
  const { clusters } = parse(text) as { clusters: { cluster: { server: string } }[] };
  return { KUBERNETES_CONFIG_FILE: file, KUBERNETES_API_URL: clusters[0]?.cluster.server ?? "" };
}
