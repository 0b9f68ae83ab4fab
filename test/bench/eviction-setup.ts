/** The setup of the eviction bench: the shipped webhook server, and the bench's cluster. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { parse } from "yaml";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { loadConnection } from "../../infra/kubernetes/connection.ts";
import { pods } from "../../infra/kubernetes/resources.ts";
import type { BenchGroup, ClusterFigures } from "./eviction-cluster.ts";
import { readResidentMb } from "./peak.ts";
import { NODE_ARGS, SERVER_ARGS } from "./process.ts";
import { evictionRequest, type LoadFigures, reviewRequest, sendLoad } from "./review-load.ts";
import { prepareServers, type ReviewServer } from "./review-server.ts";
import type { BenchEnvironment } from "./row.ts";

export const CONNECTIONS = 8;
const LISTS = 7;
const CLUSTER = join(import.meta.dirname, "eviction-cluster.ts");
const MANIFEST = new URL("../../infra/manifests/webhooks/pod-eviction.yaml", import.meta.url);

/** The path in the manifest. */
export const PATH =
  (parse(readFileSync(MANIFEST, "utf8")) as { webhooks: { clientConfig: { service: { path: string } } }[] }).webhooks[0]
    ?.clientConfig.service.path ?? "";

type ListForm = "json" | "protobuf";

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
  const cluster = spawn(process.execPath, [CLUSTER, JSON.stringify(groups)], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  let server: ReviewServer | undefined;
  try {
    const kubeconfig = join(scratch, "evictions-kubeconfig");
    const [printed] = (await once(createInterface({ input: cluster.stdout as Readable }), "line")) as [string];
    await writeFile(kubeconfig, printed);
    const startServer = await prepareServers(scratch, printed);
    server = await startServer([...NODE_ARGS, ...SERVER_ARGS, join(dist, "functions/serve.js")], reviewRequest(3));
    const { target, pid } = server;
    const sizeOf = (name: string): number => groups.find((one) => one.name === name)?.replicas ?? 0;
    return await play({
      sendLoad: (name, seconds) => {
        const pods = Array.from({ length: sizeOf(name) }, (_, ordinal) => `${name}-zone-a-${ordinal}`);
        const requests = pods.map((pod) => evictionRequest(PATH, pod));
        return sendLoad(target, { requests, seconds, connections: CONNECTIONS });
      },
      async figures() {
        cluster.send("figures");
        const [figures] = (await once(cluster, "message")) as [ClusterFigures];
        return figures;
      },
      listMs: (name, form) => timeList(kubeconfig, name, form),
      residentMb: async () => readResidentMb(pid),
    });
  } finally {
    await server?.end();
    cluster.kill("SIGKILL");
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
