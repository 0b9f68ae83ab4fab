/**
 * Sends reviews of evictions to the webhook server: with wrk if it is installed, else with a Node client,
 * which needs more CPU.
 */
import { execFile } from "node:child_process";
import { mkdtemp, writeFile } from "node:fs/promises";
import https from "node:https";
import { join } from "node:path";
import { promisify } from "node:util";
import { median } from "./row.ts";

export interface Target {
  readonly port: number;
  readonly path: string;
  /** The folder for wrk's input. */
  readonly scratch: string;
}

export interface LoadFigures {
  /** Responses per second. */
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly answers: number;
  readonly allowed: number;
}

const run = promisify(execFile);

export const LOADER: "wrk" | "Node" = await run("wrk", ["-v"]).then(
  () => "wrk" as const,
  // `wrk --version` exits with 1.
  (error: { code?: unknown }) => (error.code === "ENOENT" ? ("Node" as const) : ("wrk" as const)),
);

/** Sends reviews of the pods in turn, on `connections` connections, for `seconds`. */
export async function askFor(
  pods: readonly string[],
  target: Target,
  connections: number,
  seconds: number,
): Promise<LoadFigures> {
  const bodies = pods.map(reviewOf);
  return LOADER === "wrk"
    ? await askByWrk(bodies, target, connections, seconds)
    : await askByNode(bodies, target, connections, seconds);
}

function reviewOf(name: string): string {
  const request = {
    uid: `bench-${name}`,
    operation: "CREATE",
    kind: { group: "policy", version: "v1", kind: "Eviction" },
    resource: { group: "", version: "v1", resource: "pods" },
    subResource: "eviction",
    namespace: "default",
    name,
    dryRun: false,
    object: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace: "default" } },
    oldObject: null,
  };
  return JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
}

async function askByWrk(
  bodies: readonly string[],
  { port, path, scratch }: Target,
  connections: number,
  seconds: number,
): Promise<LoadFigures> {
  const script = join(await mkdtemp(join(scratch, "wrk-")), "evictions.lua");
  await writeFile(script, luaScript(bodies, path));
  const options = [
    "-t1",
    `-c${connections}`,
    `-d${seconds}s`,
    "--timeout",
    "20s",
    "-s",
    script,
    `https://127.0.0.1:${port}`,
  ];
  const { stdout } = await run("wrk", options);
  const figures = JSON.parse(/^FIGURES (?<json>.*)$/m.exec(stdout)?.groups?.["json"] ?? "{}") as LoadFigures;
  if (!(figures.answers > 0)) throw new Error(`wrk got no answers:\n${stdout}`);
  return figures;
}

const luaScript = (bodies: readonly string[], path: string): string => `
local bodies = {${bodies.map((body) => `[==[${body}]==]`).join(",")}}
local at, threads = 0, {}
allowed = 0
function setup(thread) table.insert(threads, thread) end
function request()
  at = at % #bodies + 1
  return wrk.format("POST", "${path}?timeout=10s", {["content-type"] = "application/json"}, bodies[at])
end
function response(status, headers, body) if body:find('"allowed":true', 1, true) then allowed = allowed + 1 end end
function done(summary, latency)
  local figures = '{"perSecond":%.1f,"p50":%.3f,"p99":%.3f,"answers":%d,"allowed":%d}'
  local per = summary.requests / summary.duration * 1e6
  print("FIGURES " .. figures:format(per, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, summary.requests, threads[1]:get("allowed")))
end
`;

async function askByNode(
  bodies: readonly string[],
  { port, path }: Target,
  connections: number,
  seconds: number,
): Promise<LoadFigures> {
  const agent = new https.Agent({ keepAlive: true, maxSockets: connections, rejectUnauthorized: false });
  const took: number[] = [];
  let allowed = 0;
  let at = 0;
  const startedAt = performance.now();
  const work = async (): Promise<void> => {
    while (performance.now() - startedAt < seconds * 1000) {
      const from = performance.now();
      const text = await post(
        { agent, host: "127.0.0.1", port, path: `${path}?timeout=10s` },
        bodies[at++ % bodies.length] ?? "",
      );
      took.push(performance.now() - from);
      if (text.includes('"allowed":true')) allowed++;
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  const perSecond = (took.length / (performance.now() - startedAt)) * 1000;
  agent.destroy();
  const p99 = took.toSorted((a, b) => a - b)[Math.floor(took.length * 0.99)] ?? Number.NaN;
  return { perSecond, p50: median(took), p99, answers: took.length, allowed };
}

function post(target: https.RequestOptions, body: string): Promise<string> {
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const sent = https.request({ ...target, method: "POST", headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk) => (text += chunk));
      answer.on("end", () => resolve(text));
    });
    sent.on("error", reject).end(body);
  });
}
