/**
 * Memory and start of an agent, bundled and with the arguments of its DaemonSet: on a simulated host, by the node API
 * as it ships.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseAllDocuments } from "yaml";
import { bundle } from "../../infra/build.ts";
import { certify } from "../certify.ts";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { shadowName } from "../../reconciler/nodes/shadow.ts";
import { type Emulator, startEmulator } from "../emulator/index.ts";
import { dig, put } from "../emulator/objects.ts";
import type { KubeObject } from "../emulator/store.ts";
import { serverVariables } from "../cluster/stage/process.ts";
import { connectionOf } from "../functions/connection.ts";
import { NAMESPACE, playAgent, SHADOWS } from "../functions/nodes/stage.ts";
import { startHost } from "../host/host-server.ts";
import { freePort } from "../loopback.ts";
import { AGENT_ARGS, MALLOC_ENV, NODE_ARGS, SERVER_ARGS } from "./process.ts";
import { readResidentMb } from "./peak.ts";
import { atMost, type Bench, type BenchEnvironment, median } from "./row.ts";
import { add } from "../builders.ts";

const AIM_MB = 60;
const NODE = "node-1";
const ROUNDS = 300;
const ROUND_MS = 30;
/** Milliseconds after which V8 has given back what it does not need. */
const SETTLE_MS = 10_000;
const STARTS = 6;

/** A program with nothing but TLS and a timer: the minimum for Node.js. */
const FLOOR = ["-e", `require("node:https"); setInterval(() => {}, 1000); console.log("runs")`];

export const benchAgent: Bench = async (environment) => {
  const emulator = await startEmulator({ controllers: false });
  const host = await startHost({ version: "1.0.0", offers: "1.1.0" });
  const children: ChildProcess[] = [];
  try {
    const env = { ...(await prepare(environment, emulator, children)), BENCH_SOCKET: host.socketPath };
    const start = async (...program: readonly string[]): Promise<number> => {
      const child = spawn(process.execPath, [...NODE_ARGS, ...AGENT_ARGS, ...program], {
        env,
        stdio: ["ignore", "pipe", "inherit"],
      });
      children.push(child);
      await once(child.stdout, "data");
      return child.pid ?? 0;
    };
    const script = join(environment.scratch, "test/bench/agent-process.js");
    const starts: number[] = [];
    for (let i = 0; i < STARTS; i++) {
      const before = performance.now();
      await start(script);
      starts.push(performance.now() - before);
      await end(children.at(-1));
    }
    const pid = await start(script);
    const figures = await play(emulator, () => readResidentMb(pid));
    const floor = await start(...FLOOR);
    await sleep(SETTLE_MS);
    const [idle, rounds, staged] = figures.map((mb) => `${mb.toFixed(0)} MB`);
    const memory = `${idle} idle, ${rounds} after ${ROUNDS} rounds, ${staged} after staging`;
    return [
      {
        what: "agent, resident",
        figure: `${memory}; Node.js alone with TLS ${readResidentMb(floor).toFixed(0)} MB`,
        aim: atMost(AIM_MB, " MB", Math.max(...figures)),
      },
      {
        what: "agent, start to its first line in the log",
        figure: `${median(starts.slice(1)).toFixed(0)} ms (best ${Math.min(...starts).toFixed(0)} ms)`,
      },
    ];
  } finally {
    await Promise.all(children.map(end));
    await host.stop();
    await emulator.stop();
  }
};

/**
 * Resolves with what `readMb` says once the agent has reported, after many rounds, each for a change of its shadow, and
 * once an update is staged.
 */
async function play({ store }: Emulator, readMb: () => number): Promise<number[]> {
  const shadow = (): KubeObject => store.get(SHADOWS, NAMESPACE, shadowName(NODE)) as KubeObject;
  const untilState = async (state: string): Promise<void> => {
    while (dig(shadow() ?? {}, "status", "current_state") !== state) await sleep(5);
    await sleep(SETTLE_MS);
  };
  await untilState("Idle");
  const figures = [readMb()];
  for (let i = 0; i < ROUNDS; i++) {
    store.update(SHADOWS, put(shadow(), ["metadata", "annotations"], { round: String(i) }));
    await sleep(ROUND_MS);
  }
  await sleep(SETTLE_MS);
  figures.push(readMb());
  const wish = {
    state: "StagedAndPerformedUpdate",
    version: "1.1.0",
    state_transition_timestamp: new Date().toISOString(),
  };
  store.update(SHADOWS, put(shadow(), ["spec"], wish));
  await untilState(wish.state);
  return [...figures, readMb()];
}

/**
 * The cluster with the node and the agent's pod, the node API, and the files of the pod; resolves with the environment
 * of agents.
 */
async function prepare({ root, dist, scratch }: BenchEnvironment, emulator: Emulator, children: ChildProcess[]) {
  const { store } = emulator;
  await bundle({ "agent-process": "test/bench/agent-process.ts" }, root, scratch);
  const [crd] = parseAllDocuments(
    readFileSync(join(root, "infra/manifests/node-updates/crds/bottlerocketshadows.yaml"), "utf8"),
  );
  store.create("customresourcedefinitions.apiextensions.k8s.io", crd?.toJS() as KubeObject);
  add(store, "Namespace", NAMESPACE);
  const connection = connectionOf(emulator);
  const agent = await playAgent(
    { emulator, cluster: connectCluster(connection, { timeoutMs: 10_000 }), calls: [] },
    NODE,
  );
  connection.close();
  const folder = join(scratch, "agent");
  await mkdir(folder, { recursive: true });
  const { caPem, certPem, keyPem } = await certify("localhost");
  const files = {
    boot_id: "boot-1",
    "node-api-token": agent.headers["BrupopK8sAuthToken"] ?? "",
    "node-api-ca.crt": caPem,
    token: emulator.token,
    "ca.crt": emulator.caPem,
    "tls.crt": certPem,
    "tls.key": keyPem,
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  await emulator.writeKubeconfig(join(folder, "kubeconfig"));
  const [tlsPort, port] = [await freePort(), await freePort()];
  const common = { PATH: process.env["PATH"], KUBERNETES_NAMESPACE: NAMESPACE, LOG_LEVEL: "info", ...MALLOC_ENV };
  const apiEnv = { ...serverVariables({ namespace: NAMESPACE, folder, tlsPort, port }), ...common };
  children.push(
    spawn(process.execPath, [...NODE_ARGS, ...SERVER_ARGS, join(dist, "functions/nodes/main.js")], {
      env: apiEnv,
      stdio: ["ignore", "ignore", "inherit"],
    }),
  );
  while (!(await fetch(`http://127.0.0.1:${port}/ready`).catch(() => undefined))?.ok) await sleep(50);
  const { hostname, port: apiPort } = new URL(emulator.url);
  return {
    ...common,
    BENCH_FOLDER: folder,
    NODE_COMPILE_CACHE: join(scratch, "agent-cache"),
    KUBERNETES_SERVICE_HOST: hostname,
    KUBERNETES_SERVICE_PORT: apiPort,
    APISERVER_SERVICE_PORT: String(tlsPort),
    MY_NODE_NAME: NODE,
  };
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (!child || child.exitCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}
