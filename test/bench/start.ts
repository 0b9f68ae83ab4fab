/**
 * Milliseconds from the reconciler's start to its first connection to the API server, compared with Node's
 * minimum.
 */
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { listen } from "../loopback.ts";
import { NODE_ARGS } from "./process.ts";
import { type Bench, median, type Row } from "./row.ts";

const AIM_MS = 250;
const STARTS = 10;

/** A program that only opens one connection: the minimum for Node.js. */
const FLOOR = ["-e", `require("node:https").get(process.env.SERVER).on("error", () => {})`];

type Environment = Readonly<Record<string, string>>;

export const benchStart: Bench = async ({ dist, scratch }) => {
  const main = [join(dist, "reconciler/main.js")];
  const kubeconfig = join(scratch, "kubeconfig");
  const warm = { NODE_COMPILE_CACHE: join(scratch, "compile-cache") };
  const rows = [
    await timeStarts("start to first API call", main, kubeconfig, {}),
    await timeStarts("the same, compile cache warm as in the image", main, kubeconfig, warm),
  ];
  const busy = Array.from({ length: availableParallelism() }, () =>
    spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }),
  );
  try {
    rows.push(await timeStarts("the same, while every core is busy", main, kubeconfig, warm));
  } finally {
    for (const child of busy) child.kill("SIGKILL");
  }
  return rows;
};

/** Measures the reconciler and the minimum alternately, so that the machine's other load affects both. */
async function timeStarts(what: string, main: readonly string[], kubeconfig: string, env: Environment): Promise<Row> {
  // The first start warms the disk cache and, if enabled, the compile cache.
  await timeStart(main, kubeconfig, env);
  const times: number[] = [];
  const floors: number[] = [];
  for (let i = 0; i < STARTS; i++) {
    times.push(await timeStart(main, kubeconfig, env));
    floors.push(await timeStart(FLOOR, kubeconfig, {}));
  }
  const [ms, floorMs] = [median(times), median(floors)];
  const figure = `${ms.toFixed(0)} ms (best ${Math.min(...times).toFixed(0)} ms), ${(ms / floorMs).toFixed(1)} times the bare ${floorMs.toFixed(0)} ms`;
  return { what, figure, aim: { text: `below ${AIM_MS} ms`, met: ms < AIM_MS } };
}

/** Milliseconds until the program connects to the API server. */
async function timeStart(program: readonly string[], kubeconfig: string, env: Environment): Promise<number> {
  const server = createServer();
  const url = `https://127.0.0.1:${await listen(server)}`;
  await writeFile(kubeconfig, kubeconfigFor(url));
  const own = { KUBECONFIG: kubeconfig, KUBERNETES_NAMESPACE: "x", SERVER: url };
  const startedAt = performance.now();
  const child = spawn(process.execPath, [...NODE_ARGS, ...program], {
    env: { ...process.env, ...own, ...env },
    stdio: "ignore",
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const socket = await new Promise<{ destroy(): void }>((resolve) => server.once("connection", resolve));
  const ms = performance.now() - startedAt;
  socket.destroy();
  // SIGTERM, as a killed process does not save its compile cache.
  child.kill("SIGTERM");
  await ended;
  server.close();
  return ms;
}

function kubeconfigFor(server: string): string {
  return JSON.stringify({
    clusters: [{ name: "x", cluster: { server } }],
    users: [{ name: "x", user: { token: "x" } }],
    contexts: [{ name: "x", context: { cluster: "x", user: "x" } }],
    "current-context": "x",
  });
}
