/** The setup of the eviction bench: the shipped webhook server, and the bench's cluster. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parse } from "yaml";
import { certify } from "../certify.ts";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { loadConnection } from "../../infra/kubernetes/connection.ts";
import { pods } from "../../infra/kubernetes/resources.ts";
import type { BenchGroup, ClusterFigures } from "./eviction-cluster.ts";
import { askFor, type LoadFigures } from "./eviction-load.ts";
import { MALLOC_ENV, NODE_ARGS, SERVER_ARGS } from "./process.ts";
import type { BenchEnvironment } from "./row.ts";

export const CONNECTIONS = 8;
const LISTS = 7;
const NAME = "zonewise.default.svc";
const CLUSTER = join(import.meta.dirname, "eviction-cluster.ts");
const MANIFEST = new URL("../../infra/manifests/webhooks/pod-eviction.yaml", import.meta.url);

/** The path in the manifest. */
export const PATH =
  (parse(readFileSync(MANIFEST, "utf8")) as { webhooks: { clientConfig: { service: { path: string } } }[] }).webhooks[0]
    ?.clientConfig.service.path ?? "";

export type ListForm = "json" | "protobuf";

export interface Setup {
  /** Sends reviews of the pods of a group's first zone in turn. */
  readonly sendLoad: (group: string, seconds: number) => Promise<LoadFigures>;
  /** The figures since the last call. */
  readonly figures: () => Promise<ClusterFigures>;
  /**
   * Durations in milliseconds of a few lists of the group's pods on an idle server, in the form that the server reads
   * or in JSON.
   */
  readonly listMs: (group: string, form: ListForm) => Promise<number[]>;
  readonly residentMb: () => Promise<number>;
}

/** Starts both processes, runs the bench, and stops them. */
export async function withSetup<T>(
  { dist, scratch }: BenchEnvironment,
  groups: readonly BenchGroup[],
  play: (setup: Setup) => Promise<T>,
): Promise<T> {
  const children: ChildProcess[] = [];
  const kubeconfig = join(scratch, "evictions-kubeconfig");
  try {
    const cluster = await start(children, [CLUSTER, JSON.stringify(groups)], {}, /^\{"apiVersion/);
    await writeFile(kubeconfig, cluster.line);
    const tls = await certify(NAME);
    const files = {
      SERVER_TLS_CERT_FILE: join(scratch, "evictions.crt"),
      SERVER_TLS_KEY_FILE: join(scratch, "evictions.key"),
    };
    await Promise.all([
      writeFile(files.SERVER_TLS_CERT_FILE, tls.certPem),
      writeFile(files.SERVER_TLS_KEY_FILE, tls.keyPem),
    ]);
    const ports = { SERVER_TLS_PORT: "0", SERVER_PORT: "0", SERVER_ADDRESS: "127.0.0.1" };
    const env = { ...MALLOC_ENV, KUBECONFIG: kubeconfig, KUBERNETES_NAMESPACE: "default", ...ports, ...files };
    const server = await start(
      children,
      [...NODE_ARGS, ...SERVER_ARGS, join(dist, "functions/serve.js")],
      env,
      /"what":"webhooks"/,
    );
    const { port } = JSON.parse(server.line) as { port: number };
    const target = { port, path: PATH, scratch };
    const sizeOf = (name: string): number => groups.find((one) => one.name === name)?.replicas ?? 0;
    const setup: Setup = {
      sendLoad: (name, seconds) =>
        askFor(
          Array.from({ length: sizeOf(name) }, (_, ordinal) => `${name}-zone-a-${ordinal}`),
          target,
          CONNECTIONS,
          seconds,
        ),
      async figures() {
        cluster.child.send("figures");
        const [figures] = (await once(cluster.child, "message")) as [ClusterFigures];
        return figures;
      },
      listMs: (name, form) => timeList(kubeconfig, name, form),
      residentMb: async () =>
        Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${server.child.pid}/status`, "utf8"))?.[1] ?? 0) / 1024,
    };
    return await play(setup);
  } finally {
    for (const child of children) child.kill("SIGKILL");
  }
}

async function timeList(kubeconfig: string, group: string, form: ListForm): Promise<number[]> {
  const { createListDecoder: _, ...podsInJson } = pods;
  const resource = form === "json" ? podsInJson : pods;
  const cluster = connectCluster(await loadConnection({ kubeconfig }), { timeoutMs: 60_000 });
  const times: number[] = [];
  for (let i = 0; i < LISTS; i++) {
    const from = performance.now();
    for await (const page of cluster.list(resource, { namespace: "default", labelSelector: `rollout-group=${group}` }))
      void page;
    times.push(performance.now() - from);
  }
  return times.slice(1);
}

/** Starts a process and resolves with its first output line that matches the pattern. */
async function start(children: ChildProcess[], args: readonly string[], env: Record<string, string>, pattern: RegExp) {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  children.push(child);
  const found = Promise.withResolvers<string>();
  createInterface({ input: child.stdout ?? process.stdin }).on(
    "line",
    (line) => pattern.test(line) && found.resolve(line),
  );
  child.once("exit", (code) => found.reject(new Error(`${args.join(" ")} ended with ${code}`)));
  return { child, line: await found.promise };
}
