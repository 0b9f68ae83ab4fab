/** Measures the shipped webhook server: start-up time, memory and throughput. */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { generateCertificates } from "../../infra/certs/act/generate.ts";
import { freePort } from "../loopback.ts";
import { readResidentMb } from "./peak.ts";
import { MALLOC_ENV, NODE_ARGS, SERVER_ARGS } from "./process.ts";
import { atMost, type Bench, median } from "./row.ts";

const NAME = "zonewise.default.svc";
/** As in the Dockerfile. */
const CONNECTIONS = 8;
const REQUESTS = 40_000;
const STARTS = 6;

interface Target {
  readonly port: number;
  readonly ca: string;
}

/** Upstream's figures on such a machine, and the tolerance. */
const START_MS = 255;
const IDLE_MB = 75;
const P50_MS = 0.77;

export const benchWebhooks: Bench = async ({ dist, scratch }) => {
  const { caPem, certPem, keyPem } = await generateCertificates({
    dnsNames: [NAME],
    organization: "bench",
    validityDays: 1,
    now: new Date(),
  });
  const [certFile, keyFile, kubeconfig] = [
    join(scratch, "tls.crt"),
    join(scratch, "tls.key"),
    join(scratch, "webhooks-kubeconfig"),
  ];
  await Promise.all([writeFile(certFile, certPem), writeFile(keyFile, keyPem), writeFile(kubeconfig, KUBECONFIG)]);
  const [port, plain] = [await freePort(), await freePort()];
  const target = { port, ca: caPem };
  const env = {
    PATH: process.env["PATH"],
    KUBERNETES_NAMESPACE: "default",
    KUBECONFIG: kubeconfig,
    SERVER_TLS_CERT_FILE: certFile,
    SERVER_TLS_KEY_FILE: keyFile,
    SERVER_TLS_PORT: String(port),
    SERVER_PORT: String(plain),
    SERVER_ADDRESS: "127.0.0.1",
    NODE_COMPILE_CACHE: join(scratch, "webhooks-cache"),
    ...MALLOC_ENV,
  };
  const starts: number[] = [];
  let server: ChildProcess | undefined;
  for (let i = 0; i < STARTS; i++) {
    if (server) await end(server);
    const begin = performance.now();
    server = spawn(process.execPath, [...NODE_ARGS, ...SERVER_ARGS, join(dist, "functions/serve.js")], {
      env,
      stdio: "ignore",
    });
    await firstAnswer(target);
    starts.push(performance.now() - begin);
  }
  const pid = server?.pid ?? 0;
  const idle = readResidentMb(pid);
  await load(target, REQUESTS / 4);
  const { perSecond, p50, p99 } = await load(target, REQUESTS);
  const after = readResidentMb(pid);
  if (server) await end(server);
  const start = median(starts.slice(1));
  return [
    {
      what: "webhook server, start to first TLS answer",
      figure: `${start.toFixed(0)} ms (best ${Math.min(...starts).toFixed(0)} ms)`,
      aim: atMost(START_MS, " ms", start),
    },
    {
      what: "webhook server, resident",
      figure: `${idle.toFixed(0)} MB idle, ${after.toFixed(0)} MB after ${REQUESTS} requests`,
      aim: atMost(IDLE_MB, " MB idle", idle),
    },
    {
      what: `no-downscale over TLS, ${CONNECTIONS} connections`,
      figure: `${perSecond.toFixed(0)} requests/s, p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`,
      aim: atMost(P50_MS, " ms p50", p50),
    },
  ];
};

/** An unlabelled StatefulSet is decided by its review, without requests to the API server. */
const KUBECONFIG = JSON.stringify({
  clusters: [{ name: "bench", cluster: { server: "https://127.0.0.1:1" } }],
  users: [{ name: "bench", user: { token: "bench" } }],
  contexts: [{ name: "bench", context: { cluster: "bench", user: "bench" } }],
  "current-context": "bench",
});

const REQUEST = ((): string => {
  const containers = Array.from({ length: 3 }, (_, i) => ({
    name: `c${i}`,
    image: "app:1",
    env: [{ name: "A", value: "b".repeat(200) }],
  }));
  const object = (replicas: number): object => ({
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: {
      name: "ingester-zone-a",
      namespace: "default",
      labels: { "rollout-group": "ingester" },
      annotations: { note: "n".repeat(500) },
    },
    spec: { replicas, serviceName: "ingester", template: { spec: { containers } } },
  });
  const body = JSON.stringify({
    kind: "AdmissionReview",
    apiVersion: "admission.k8s.io/v1",
    request: {
      uid: "705ab4f5-6393-11e8-b7cc-42010a800002",
      operation: "UPDATE",
      namespace: "default",
      name: "ingester-zone-a",
      kind: { group: "apps", version: "v1", kind: "StatefulSet" },
      resource: { group: "apps", version: "v1", resource: "statefulsets" },
      dryRun: false,
      userInfo: { username: "admin" },
      oldObject: object(3),
      object: object(2),
    },
  });
  const head = [
    "POST /admission/no-downscale?timeout=10s HTTP/1.1",
    `host: ${NAME}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
})();

async function load(target: Target, count: number): Promise<{ perSecond: number; p50: number; p99: number }> {
  const times: number[] = [];
  let left = count;
  const begin = performance.now();
  const work = async (): Promise<void> => {
    const socket = await open(target);
    while (left-- > 0) {
      const sent = performance.now();
      await exchange(socket);
      times.push(performance.now() - sent);
    }
    socket.destroy();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, work));
  const seconds = (performance.now() - begin) / 1000;
  const sorted = times.toSorted((a, b) => a - b);
  return {
    perSecond: count / seconds,
    p50: sorted[Math.floor(count * 0.5)] ?? 0,
    p99: sorted[Math.floor(count * 0.99)] ?? 0,
  };
}

function open({ port, ca }: Target): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", servername: NAME, ca }, () => resolve(socket));
    socket.setNoDelay(true).on("error", reject);
  });
}

/** A raw exchange: an HTTP client would cost as much as the server. */
function exchange(socket: TLSSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = "";
    const take = (chunk: Buffer): void => {
      text += chunk.toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      if (end < 0 || text.length < end + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1])) return;
      socket.off("data", take);
      if (text.startsWith("HTTP/1.1 200") && text.endsWith("}")) resolve();
      else reject(new Error(text));
    };
    socket.on("data", take);
    socket.write(REQUEST);
  });
}

async function firstAnswer(target: Target): Promise<void> {
  for (;;) {
    const socket = await open(target).catch(() => undefined);
    if (socket) {
      await exchange(socket);
      socket.destroy();
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

async function end(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await ended;
}
