/** A tick over 50 groups of 3 zones of 100 pods on the embedded cluster: API calls, bytes of memory, milliseconds; and the bundled reconciler's start. */
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startEmulator, type Emulator } from "../emulator/index.ts";

/** As the image starts it: a small young generation halves the peak, and costs nothing. */
const NODE_ARGS = ["--max-semi-space-size=1"];
const GROUPS = 50;
const ZONES = 3;
const REPLICAS = 100;

export interface Row {
  readonly what: string;
  readonly figures: string;
}

function createGroups(emulator: Emulator): void {
  for (let group = 0; group < GROUPS; group++) {
    for (let zone = 0; zone < ZONES; zone++) {
      const name = `g${group}-zone-${"abc".charAt(zone)}`;
      const template = {
        metadata: { labels: { name }, annotations: { "sim/ready-after-ms": "0" } },
        spec: { containers: [{ name: "c", image: "x:1" }] },
      };
      emulator.store.create("statefulsets.apps", {
        apiVersion: "apps/v1",
        kind: "StatefulSet",
        metadata: { name, namespace: "default", labels: { "rollout-group": `g${group}` } },
        spec: {
          serviceName: name,
          replicas: REPLICAS,
          podManagementPolicy: "Parallel",
          updateStrategy: { type: "OnDelete" },
          selector: { matchLabels: { name } },
          template,
        },
      });
    }
  }
}

async function untilReady(emulator: Emulator): Promise<void> {
  for (;;) {
    const sets = emulator.store.list("statefulsets.apps", "default") as unknown as { status?: { readyReplicas?: number } }[];
    if (sets.every(({ status }) => status?.readyReplicas === REPLICAS)) return;
    await sleep(200);
  }
}

/** Runs a bundled script in a process of its own and resolves with what it printed, parsed. */
async function measure(script: string, env: Record<string, string>): Promise<Record<string, number>> {
  const child = spawn(process.execPath, [...NODE_ARGS, script], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  for await (const chunk of child.stdout) text += String(chunk);
  return JSON.parse(text) as Record<string, number>;
}

export async function benchTick(script: string): Promise<Row[]> {
  const emulator = await startEmulator();
  const folder = await mkdtemp(join(tmpdir(), "bench-"));
  const env = { KUBECONFIG: join(folder, "kubeconfig") };
  try {
    await emulator.writeKubeconfig(env.KUBECONFIG);
    createGroups(emulator);
    await untilReady(emulator);
    const show = ({ calls = 0, ms = 0, firstMs = 0, rssMb = 0 }: Record<string, number>): string =>
      `${calls} calls, ${ms} ms (first ${firstMs} ms), peak ${rssMb} MB`;
    const rows = [{ what: "tick, 50 groups settled", figures: show(await measure(script, env)) }];
    const all = { ...env, LOOK: "all" };
    rows.push({ what: "tick, a closer look at all 15,000 pods", figures: show(await measure(script, all)) });
    const zone = emulator.store.get("statefulsets.apps", "default", "g7-zone-b");
    if (zone) {
      const spec = zone["spec"] as { template: { spec: object } };
      const template = { ...spec.template, spec: { containers: [{ name: "c", image: "x:2" }] } };
      emulator.store.update("statefulsets.apps", { ...zone, spec: { ...spec, template } });
      await sleep(500);
    }
    rows.push({ what: "tick, one group of 300 pods rolling", figures: show(await measure(script, env)) });
    return rows;
  } finally {
    await emulator.stop();
    await rm(folder, { recursive: true });
  }
}

/** Milliseconds from the start of the bundled reconciler to its first connection to the API server; the best and the middle of 9. */
export async function benchStart(bundle: string): Promise<Row[]> {
  const folder = await mkdtemp(join(tmpdir(), "bench-"));
  const rows: Row[] = [];
  for (const [what, cache] of [
    ["start to first API call", ""],
    ["start to first API call, compile cache warm", join(folder, "cache")],
  ] as const) {
    const times: number[] = [];
    for (let i = 0; i < 10; i++) times.push(await timeStart(bundle, folder, cache));
    const sorted = times.slice(1).toSorted((a, b) => a - b);
    rows.push({ what, figures: `best ${sorted[0]?.toFixed(0)} ms, median ${sorted[4]?.toFixed(0)} ms` });
  }
  await rm(folder, { recursive: true });
  return rows;
}

async function timeStart(bundle: string, folder: string, cache: string): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  const KUBECONFIG = join(folder, "kubeconfig");
  const cluster = { server: `https://127.0.0.1:${port}` };
  const named = {
    clusters: [{ name: "x", cluster }],
    users: [{ name: "x", user: { token: "x" } }],
    contexts: [{ name: "x", context: { cluster: "x", user: "x" } }],
  };
  await writeFile(KUBECONFIG, JSON.stringify({ apiVersion: "v1", kind: "Config", "current-context": "x", ...named }));
  const startedAt = performance.now();
  const env = { ...process.env, KUBECONFIG, KUBERNETES_NAMESPACE: "x", ...(cache && { NODE_COMPILE_CACHE: cache }) };
  const child = spawn(process.execPath, [...NODE_ARGS, bundle], { env, stdio: "ignore" });
  const socket = await new Promise<{ destroy(): void }>((resolve) => server.once("connection", resolve));
  const took = performance.now() - startedAt;
  socket.destroy();
  child.kill();
  await new Promise((resolve) => child.once("exit", resolve));
  server.close();
  return took;
}
