/** Evictions through the webhook server as it is shipped, over TLS with 8 connections, on the embedded cluster: every one is judged on fresh lists. */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import https from "node:https";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { generateCertificates } from "../../infra/certs/generate.ts";
import { visitEach } from "../../infra/slots.ts";
import { NODE_ARGS } from "./process.ts";
import type { Bench, Row } from "./row.ts";

const CONNECTIONS = 8;
const REQUESTS = 2000;
const NAME = "zonewise.default.svc";
const PODS = ["zone-a-0", "zone-a-1", "zone-a-2"];
const CLUSTER = join(import.meta.dirname, "eviction-cluster.ts");
/** Five times what upstream does on such a machine. */
const LEAST_PER_SECOND = 730;

/** Dry runs, and evictions of pods that the process has reserved. */
export const benchEvictions: Bench = async ({ dist, scratch }) => {
  const children: ChildProcess[] = [];
  try {
    const kubeconfig = join(scratch, "evictions-kubeconfig");
    await writeFile(kubeconfig, await start(children, [CLUSTER], {}, /^\{"apiVersion/));
    const tls = await generateCertificates({ dnsNames: [NAME], organization: "bench", validityDays: 1, now: new Date() });
    const files = { SERVER_TLS_CERT_FILE: join(scratch, "evictions.crt"), SERVER_TLS_KEY_FILE: join(scratch, "evictions.key") };
    await Promise.all([writeFile(files.SERVER_TLS_CERT_FILE, tls.certPem), writeFile(files.SERVER_TLS_KEY_FILE, tls.keyPem)]);
    const where = {
      KUBECONFIG: kubeconfig,
      KUBERNETES_NAMESPACE: "default",
      SERVER_ADDRESS: "127.0.0.1",
      SERVER_TLS_PORT: "0",
      SERVER_PORT: "0",
    };
    const serve = [...NODE_ARGS, join(dist, "functions/serve.js")];
    const listening = await start(children, serve, { ...where, ...files }, /"what":"webhooks"/);
    const { port } = JSON.parse(listening) as { port: number };
    const agent = new https.Agent({ keepAlive: true, maxSockets: CONNECTIONS, ca: tls.caPem });
    const target = { agent, port, host: "127.0.0.1", servername: NAME };
    const ask = (dryRun: boolean, i: number): Promise<void> => evict(target, dryRun, PODS[i % PODS.length] ?? "");
    await load(REQUESTS / 4, (i) => ask(false, i));
    const rows = [
      await load(REQUESTS, (i) => ask(true, i), `eviction webhook, dry run, ${CONNECTIONS} connections`),
      await load(REQUESTS, (i) => ask(false, i), "the same, of pods that are reserved"),
    ];
    agent.destroy();
    return rows;
  } finally {
    for (const child of children) child.kill();
  }
};

/** Starts a process and resolves with the first line that it writes of this pattern. */
async function start(children: ChildProcess[], args: readonly string[], env: Record<string, string>, pattern: RegExp): Promise<string> {
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const found = Promise.withResolvers<string>();
  createInterface({ input: child.stdout }).on("line", (line) => pattern.test(line) && found.resolve(line));
  child.once("exit", (code) => found.reject(new Error(`${args.join(" ")} ended with ${code}`)));
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

async function load(count: number, ask: (i: number) => Promise<void>, what = ""): Promise<Row> {
  const took: number[] = [];
  const startedAt = performance.now();
  await visitEach(Array.from({ length: count }).keys(), { atOnce: CONNECTIONS }, async (i) => {
    const from = performance.now();
    await ask(i);
    took.push(performance.now() - from);
  });
  const rate = Math.round((count / (performance.now() - startedAt)) * 1000);
  const sorted = took.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1);
  const aim = { text: `at least ${LEAST_PER_SECOND}/s`, met: rate >= LEAST_PER_SECOND };
  return { what, figure: `${rate}/s, median ${at(0.5)} ms, p99 ${at(0.99)} ms`, aim };
}
