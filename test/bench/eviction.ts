/** Evictions through the webhook server, over TLS with 8 connections: a second, the median and the slowest of a hundred. `node test/bench/eviction.ts` */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { build } from "esbuild";
import { generateCertificates } from "../../infra/certs/generate.ts";

export interface Row {
  readonly what: string;
  readonly figures: string;
}

const CONNECTIONS = 8;
const REQUESTS = 2000;
const NAME = "zonewise.default.svc";
const PODS = ["zone-a-0", "zone-a-1", "zone-a-2"];
const SERVE = join(import.meta.dirname, "../../functions/serve.ts");
const CLUSTER = join(import.meta.dirname, "eviction-cluster.ts");

/** Rows for dry runs and for evictions that are reserved; `kubeconfig`: another cluster than the embedded one, prepared alike. */
export async function benchEvictions(kubeconfig?: string): Promise<Row[]> {
  const folder = await mkdtemp(join(tmpdir(), "bench-"));
  const children: ChildProcess[] = [];
  try {
    const outfile = join(folder, "serve.mjs");
    const banner = { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" };
    await build({ entryPoints: [SERVE], outfile, banner, bundle: true, format: "esm", platform: "node", target: "node24", minify: true });
    const config = kubeconfig ?? join(folder, "kubeconfig");
    if (kubeconfig === undefined) await writeFile(config, await start(children, CLUSTER, {}, /^\{"apiVersion/));
    const tls = await generateCertificates({ dnsNames: [NAME], organization: "bench", validityDays: 1, now: new Date() });
    const files = { TLS_CERT_FILE: join(folder, "tls.crt"), TLS_KEY_FILE: join(folder, "tls.key") };
    await Promise.all([writeFile(files.TLS_CERT_FILE, tls.certPem), writeFile(files.TLS_KEY_FILE, tls.keyPem)]);
    const env = {
      KUBECONFIG: config,
      KUBERNETES_NAMESPACE: "default",
      SERVER_ADDRESS: "127.0.0.1",
      TLS_PORT: "0",
      SERVER_PORT: "0",
      ...files,
    };
    const listening = await start(children, outfile, env, /"what":"webhooks"/);
    const { port } = JSON.parse(listening) as { port: number };
    const agent = new https.Agent({ keepAlive: true, maxSockets: CONNECTIONS, ca: tls.caPem });
    const ask = (dryRun: boolean, i: number) =>
      evict({ agent, port, host: "127.0.0.1", servername: NAME }, dryRun, PODS[i % PODS.length] ?? "");
    await load(400, (i) => ask(false, i));
    const dry = await load(REQUESTS, (i) => ask(true, i));
    const real = await load(REQUESTS, (i) => ask(false, i));
    agent.destroy();
    return [
      { what: `eviction webhook, dry run, ${CONNECTIONS} connections`, figures: dry },
      { what: `eviction webhook, reserved, ${CONNECTIONS} connections`, figures: real },
    ];
  } finally {
    for (const child of children) child.kill();
    await rm(folder, { recursive: true });
  }
}

/** Starts a process and resolves with the first line that it writes of this pattern. */
async function start(children: ChildProcess[], file: string, env: Record<string, string>, pattern: RegExp): Promise<string> {
  const child = spawn(process.execPath, [file], { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const found = Promise.withResolvers<string>();
  createInterface({ input: child.stdout }).on("line", (line) => pattern.test(line) && found.resolve(line));
  child.once("exit", (code) => found.reject(new Error(`${file} ended with ${code}`)));
  return await found.promise;
}

/** One AdmissionReview; rejects unless the eviction is allowed. */
function evict(target: https.RequestOptions, dryRun: boolean, name: string): Promise<void> {
  const request = {
    uid: `${name}-${dryRun}`,
    operation: "CREATE",
    kind: { group: "policy", version: "v1", kind: "Eviction" },
    resource: { group: "", version: "v1", resource: "pods" },
    subResource: "eviction",
    namespace: "default",
    name,
    dryRun,
    object: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace: "default" } },
    oldObject: null,
  };
  const body = JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const sent = https.request({ ...target, method: "POST", path: "/admission/pod-eviction?timeout=10s", headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk) => (text += chunk));
      answer.on("end", () => (text.includes('"allowed":true') ? resolve() : reject(new Error(text))));
    });
    sent.on("error", reject).end(body);
  });
}

async function load(count: number, ask: (i: number) => Promise<void>): Promise<string> {
  const took: number[] = [];
  const queue = Array.from({ length: count }, (_, i) => i).values();
  const startedAt = performance.now();
  const work = async (): Promise<void> => {
    for (const i of queue) {
      const from = performance.now();
      await ask(i);
      took.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, work));
  const rate = Math.round((count / (performance.now() - startedAt)) * 1000);
  const sorted = took.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1);
  return `${rate}/s, median ${at(0.5)} ms, p99 ${at(0.99)} ms`;
}

if (process.argv[1] === import.meta.filename) console.table(await benchEvictions(process.argv[2]));
