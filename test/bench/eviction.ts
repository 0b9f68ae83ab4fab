/**
 * Evictions that the shipped webhook server allows, over TLS, on the embedded cluster with pods of 8 kB: each answer
 * has a list of the group's pods in it.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parse } from "yaml";
import { readResidentMb } from "./peak.ts";
import { NODE_ARGS, SERVER_ARGS } from "./process.ts";
import { evictionRequest, reviewRequest, sendLoad } from "./review-load.ts";
import { prepareServers } from "./review-server.ts";
import { type Aim, atMost, type Bench, type BenchEnvironment, type Row } from "./row.ts";

const CONNECTIONS = 8;
const SECONDS = 8;
const WARM_UP_SECONDS = 4;
const SMALLEST = 3;
const LARGEST = 500;
/** Pods per zone: 9, 300 and 1,500 pods in total. */
const SIZES = [SMALLEST, 100, LARGEST];
/** 1.3 times what upstream holds after such load. */
const MAX_MB = 85;
/** Five times upstream's rate on such a machine. */
const LEAST_PER_SECOND = 730;
const CLUSTER = join(import.meta.dirname, "eviction-cluster.ts");
const MANIFEST = new URL("../../infra/manifests/webhooks/pod-eviction.yaml", import.meta.url);

/** The path in the manifest. */
export const PATH =
  (parse(readFileSync(MANIFEST, "utf8")) as { webhooks: { clientConfig: { service: { path: string } } }[] }).webhooks[0]
    ?.clientConfig.service.path ?? "";

export const benchEvictions: Bench = async (environment) => {
  const rows: Row[] = [];
  for (const replicas of SIZES) rows.push(...(await measure(environment, replicas)));
  return rows;
};

async function measure({ dist, scratch }: BenchEnvironment, replicas: number): Promise<Row[]> {
  const cluster = spawn(process.execPath, [CLUSTER, String(replicas)], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const [kubeconfig] = (await once(createInterface({ input: cluster.stdout }), "line")) as [string];
    const startServer = await prepareServers(scratch, kubeconfig);
    const args = [...NODE_ARGS, ...SERVER_ARGS, join(dist, "functions/serve.js")];
    const { target, pid, end } = await startServer(args, reviewRequest(3));
    const requests = Array.from({ length: replicas }, (_, i) => evictionRequest(PATH, `zone-a-${i}`));
    const load = { requests, connections: CONNECTIONS };
    await sendLoad(target, { ...load, seconds: WARM_UP_SECONDS });
    const { perSecond, p50, p99, answers, allowed } = await sendLoad(target, { ...load, seconds: SECONDS });
    const residentMb = readResidentMb(pid);
    await end();
    if (allowed < answers) throw new Error(`${allowed} of ${answers} evictions were allowed`);
    const what = `evictions allowed under a budget of ${(3 * replicas).toLocaleString("en")} pods`;
    return [
      {
        what: `${what}, on ${CONNECTIONS} connections`,
        figure: `${perSecond.toFixed(0)}/s, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
        ...(replicas === SMALLEST && { aim: atLeast(LEAST_PER_SECOND, perSecond) }),
      },
      {
        what: `${what}: webhook server, resident`,
        figure: `${residentMb.toFixed(0)} MB`,
        ...(replicas === LARGEST && { aim: atMost(MAX_MB, " MB", residentMb) }),
      },
    ];
  } finally {
    cluster.kill("SIGKILL");
  }
}

const atLeast = (limit: number, value: number): Aim => ({ text: `at least ${limit}/s`, met: value >= limit });
