/** Sends reviews of downscales and evictions to a webhook server over TLS, on connections that are kept. */
import { connect, type TLSSocket } from "node:tls";
import { make } from "../builders/objects.ts";

/** The name in the certificate of a bench's server. */
export const NAME = "zonewise.default.svc";

export interface Target {
  readonly port: number;
  readonly ca: string;
}

interface Load {
  /** The bytes of HTTP requests, which are sent in turn: `reviewRequest`, `evictionRequest`. */
  readonly requests: readonly string[];
  /** Requests in all, or for how long they are sent. */
  readonly count?: number;
  readonly seconds?: number;
  /** At once, each on a connection of its own. */
  readonly connections: number;
}

export interface LoadFigures {
  /** Answers a second. */
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly answers: number;
  readonly allowed: number;
}

/** A StatefulSet is decided by its review, without requests to the API server, which need not be there. */
export const KUBECONFIG = JSON.stringify({
  clusters: [{ name: "bench", cluster: { server: "https://127.0.0.1:1" } }],
  users: [{ name: "bench", user: { token: "bench" } }],
  contexts: [{ name: "bench", context: { cluster: "bench", user: "bench" } }],
  "current-context": "bench",
});

/** One HTTP request with the review of a downscale from 3 to 2 replicas. `variables`: of each of three containers. */
export function reviewRequest(variables: number): string {
  const env = Array.from({ length: variables }, (_, i) => ({ name: `VARIABLE_${i}`, value: "b".repeat(30) }));
  const containers = Array.from({ length: 3 }, (_, i) => ({ name: `c${i}`, image: "app:1", env }));
  const object = (replicas: number): object =>
    make("StatefulSet", "ingester-zone-a", {
      labels: { "rollout-group": "ingester" },
      annotations: { note: "n".repeat(500) },
      spec: { replicas, serviceName: "ingester", template: { spec: { containers } } },
    });
  return requestOf("/admission/no-downscale", {
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
  });
}

/** One HTTP request with the review of an eviction. */
export const evictionRequest = (path: string, pod: string): string =>
  requestOf(path, {
    uid: `bench-${pod}`,
    operation: "CREATE",
    kind: { group: "policy", version: "v1", kind: "Eviction" },
    resource: { group: "", version: "v1", resource: "pods" },
    subResource: "eviction",
    namespace: "default",
    name: pod,
    dryRun: false,
    object: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: pod, namespace: "default" } },
    oldObject: null,
  });

function requestOf(path: string, request: object): string {
  const body = JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
  const head = [
    `POST ${path}?timeout=10s HTTP/1.1`,
    `host: ${NAME}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

/** Rejects if an answer is another than 200. */
export async function sendLoad(
  target: Target,
  { requests, count = Infinity, seconds = Infinity, connections }: Load,
): Promise<LoadFigures> {
  const times: number[] = [];
  let sent = 0;
  let allowed = 0;
  const begin = performance.now();
  const work = async (): Promise<void> => {
    const socket = await open(target);
    while (sent < count && performance.now() - begin < seconds * 1000) {
      const from = performance.now();
      const answer = await exchange(socket, requests[sent++ % requests.length] ?? "");
      times.push(performance.now() - from);
      if (answer.includes('"allowed":true')) allowed++;
    }
    socket.destroy();
  };
  await Promise.all(Array.from({ length: connections }, work));
  const took = performance.now() - begin;
  const sorted = times.toSorted((a, b) => a - b);
  return {
    perSecond: (times.length / took) * 1000,
    p50: sorted[Math.floor(times.length * 0.5)] ?? 0,
    p99: sorted[Math.floor(times.length * 0.99)] ?? 0,
    answers: times.length,
    allowed,
  };
}

/** Resolves once the server has answered. */
export async function firstAnswer(target: Target, request: string): Promise<void> {
  for (;;) {
    const socket = await open(target).catch(() => undefined);
    if (socket) {
      await exchange(socket, request);
      socket.destroy();
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

function open({ port, ca }: Target): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", servername: NAME, ca }, () => resolve(socket));
    socket.setNoDelay(true).on("error", reject);
  });
}

/** A raw exchange: an HTTP client would cost as much as the server. */
function exchange(socket: TLSSocket, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const take = (chunk: Buffer): void => {
      text += chunk.toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      if (end < 0 || text.length < end + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1])) return;
      socket.off("data", take);
      if (text.startsWith("HTTP/1.1 200") && text.endsWith("}")) resolve(text);
      else reject(new Error(text));
    };
    socket.on("data", take);
    socket.write(request);
  });
}
