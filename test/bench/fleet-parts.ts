/** The parts of fleet.ts beside ticks: evictions, commands and the status page, as they ship. */
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Admin } from "../cluster/stage/client.ts";
import { freePort } from "../loopback.ts";
import type { ApiServer } from "./api-server.ts";
import { askFor } from "./eviction-load.ts";
import { PATH } from "./eviction-setup.ts";
import { type FleetSize, writePodStatus, zonesOf } from "./fleet-objects.ts";
import { readPeakMb, readResidentMb } from "./peak.ts";
import { NODE_ARGS, SERVER_ARGS } from "./process.ts";
import { reviewRequest } from "./review-load.ts";
import { prepareServers } from "./review-server.ts";
import { type BenchEnvironment, median, type Row } from "./row.ts";

export interface FleetStage extends BenchEnvironment {
  readonly admin: Admin;
  readonly server: ApiServer;
  readonly kubeconfig: string;
  /** What was made of what was asked for. */
  readonly size: FleetSize;
  readonly whole: FleetSize;
}

const CONNECTIONS = 8;
const SECONDS = 8;
const WARM_UP_SECONDS = 2;
const TIMES = 3;
/** How often the memory of a command is read. */
const LOOK_MS = 20;

/** Of one zone: as its budget allows, and while a pod of another zone is not ready. */
export async function measureEvictions({ admin, server, kubeconfig, size, dist, scratch }: FleetStage): Promise<Row[]> {
  const startServer = await prepareServers(scratch, await readFile(kubeconfig, "utf8"));
  const { pid, target, end } = await startServer(
    [...NODE_ARGS, ...SERVER_ARGS, join(dist, "functions/serve.js")],
    reviewRequest(3),
  );
  const [zone = "", , last = ""] = zonesOf("g0");
  const names = Array.from({ length: size.replicas }, (_, ordinal) => `${zone}-${ordinal}`);
  const to = { port: target.port, path: PATH, scratch };
  const rows: Row[] = [];
  try {
    for (const shouldAllow of [true, false]) {
      await writePodStatus(admin, `${last}-${size.replicas - 1}`, shouldAllow);
      await askFor(names, to, CONNECTIONS, WARM_UP_SECONDS);
      const { result, serverMs } = await server.measure(() => askFor(names, to, CONNECTIONS, SECONDS));
      const { allowed, answers, perSecond, p50, p99 } = result;
      if (allowed !== (shouldAllow ? answers : 0)) throw new Error(`${allowed} of ${answers} evictions were allowed`);
      const rate = `${perSecond.toFixed(0)}/s, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`;
      rows.push({
        what: `fleet: evictions ${shouldAllow ? "allowed" : "denied"}, a budget of ${3 * size.replicas} pods`,
        figure: `${rate}; webhook server ${readResidentMb(pid).toFixed(0)} MB; API server ${(serverMs / answers).toFixed(2)} ms of CPU each`,
      });
    }
  } finally {
    await writePodStatus(admin, `${last}-${size.replicas - 1}`, true);
    await end();
  }
  return rows;
}

export async function measureCommands({ server, kubeconfig, dist }: FleetStage): Promise<Row[]> {
  const rows: Row[] = [];
  for (const line of [
    "status g7",
    "status --watch=false",
    "explain g7",
    "explain pod/g7-zone-a-0",
    "plan g7",
    "doctor",
  ]) {
    const runs: Run[] = [];
    for (let i = 0; i < TIMES; i++) {
      const { result, serverMs } = await server.measure(() =>
        run(join(dist, "cli/main.js"), line.split(" "), kubeconfig),
      );
      runs.push({ ...result, serverMs });
    }
    const of = (pick: (run: Run) => number): string => median(runs.map(pick)).toFixed(0);
    rows.push({
      what: `fleet: \`zonewise ${line}\``,
      figure: `${of(({ ms }) => ms)} ms, peak ${of(({ peakMb }) => peakMb)} MB; API server ${of(({ serverMs }) => serverMs)} ms of CPU`,
    });
  }
  return rows;
}

interface Run {
  readonly ms: number;
  readonly peakMb: number;
  readonly serverMs: number;
}

/** Until it has ended, whatever its exit code. */
async function run(main: string, args: readonly string[], kubeconfig: string): Promise<Omit<Run, "serverMs">> {
  const startedAt = performance.now();
  const env = { ...process.env, KUBECONFIG: kubeconfig, KUBERNETES_NAMESPACE: "default" };
  const child = spawn(process.execPath, [main, ...args], { env, stdio: ["ignore", "ignore", "ignore"] });
  const over = new Promise((resolve) => child.once("exit", resolve));
  let peakMb = Number.NaN;
  while (child.exitCode === null && child.signalCode === null) {
    const now = readPeakMb(child.pid ?? 0);
    if (now > 0) peakMb = now;
    await Promise.race([over, sleep(LOOK_MS)]);
  }
  return { ms: performance.now() - startedAt, peakMb };
}

export async function measurePage({ server, kubeconfig, dist, size }: FleetStage): Promise<Row[]> {
  const port = await freePort();
  const env = {
    ...process.env,
    KUBECONFIG: kubeconfig,
    KUBERNETES_NAMESPACE: "default",
    ...(size.namespaces > 1 && { NAMESPACES: "*" }),
    SERVER_PORT: String(port),
    SERVER_ADDRESS: "127.0.0.1",
  };
  const child = spawn(process.execPath, [...NODE_ARGS, join(dist, "functions/status/main.js")], {
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
  try {
    while (!(await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined))) await sleep(LOOK_MS);
    const pages: { ms: number; bytes: number; serverMs: number }[] = [];
    for (let i = 0; i < TIMES; i++) {
      const { result, serverMs } = await server.measure(async () => {
        const startedAt = performance.now();
        const answer = await fetch(`http://127.0.0.1:${port}/`);
        const bytes = (await answer.arrayBuffer()).byteLength;
        if (!answer.ok) throw new Error(`the status page answers ${answer.status}`);
        return { ms: performance.now() - startedAt, bytes };
      });
      pages.push({ ...result, serverMs });
    }
    const of = (pick: (page: (typeof pages)[number]) => number): number => median(pages.map(pick));
    const figure = `${of(({ ms }) => ms).toFixed(0)} ms, ${(of(({ bytes }) => bytes) / 1000).toFixed(0)} kB, ${readPeakMb(child.pid ?? 0).toFixed(0)} MB at most; API server ${of(({ serverMs }) => serverMs).toFixed(0)} ms of CPU`;
    return [{ what: "fleet: status page", figure }];
  } finally {
    child.kill();
  }
}
