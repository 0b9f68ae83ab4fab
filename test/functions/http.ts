/** A webhook behind plain HTTP, and a client that keeps its connections. */
import { Agent, createServer, request as open, type RequestOptions } from "node:http";
import type { IncomingMessage } from "node:http";
import type { TestContext } from "node:test";
import { serveWebhook } from "../../functions/http/admission.ts";
import type { Handler, Rim } from "../../functions/http/rim.ts";
import { createBodyReader, MAX_BODY } from "../../functions/http/rim.ts";
import type { Webhook } from "../../functions/http/webhook.ts";
import { createBackgroundTasks } from "../../functions/http/rim.ts";
import { systemClock } from "../../infra/clock.ts";
import { createMetrics, type Metrics } from "../../infra/metrics/metrics.ts";
import { listen } from "../loopback.ts";
import { type Entry, keepingLog } from "./stage.ts";

export interface Asked {
  readonly status: number;
  readonly text: string;
  readonly headers: IncomingMessage["headers"];
}

interface Served {
  post(
    body: string | Buffer,
    more?: { query?: string; type?: string; method?: string; headers?: Record<string, string> },
  ): Promise<Asked>;
  readonly port: number;
  readonly entries: readonly Entry[];
  readonly metrics: Metrics;
}

/** Stops at the end of the test. */
export async function serve(t: TestContext, webhook: Webhook, rim: Partial<Rim> = {}): Promise<Served> {
  const { log, entries } = keepingLog();
  const metrics = createMetrics();
  const tools = {
    clock: systemClock,
    log,
    metrics: metrics.webhooks,
    tasks: createBackgroundTasks(),
    readBody: createBodyReader(),
  };
  const port = await listenWith(t, serveWebhook(webhook, { ...tools, requestTimeoutMs: 10_000, ...rim }));
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  t.after(() => agent.destroy());
  return {
    port,
    entries,
    metrics,
    post(body, { query = "", type = "application/json", method = "POST", headers = {} } = {}) {
      const options = { agent, port, method, path: `/${query}`, headers: { "content-type": type, ...headers } };
      // A Content-Length above the limit is refused without a look at the body.
      const readable = "transfer-encoding" in headers || Buffer.byteLength(body) <= MAX_BODY ? MAX_BODY + 1 : 0;
      return exchange(options, Buffer.from(body), readable);
    },
  };
}

interface RequestTo extends RequestOptions {
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Sends a request to this machine; resolves with its answer. No more than `readable` bytes of the body are sent before
 * the answer: if the server closes the connection while more are sent, the answer may be lost.
 */
export function exchange({ headers, ...options }: RequestTo, body: Buffer, readable = MAX_BODY + 1): Promise<Asked> {
  const isCut = body.length > readable;
  const length = "transfer-encoding" in headers ? {} : { "content-length": String(body.length) };
  return new Promise((resolve, reject) => {
    const outgoing = open({ host: "127.0.0.1", ...options, headers: { ...headers, ...length } }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, text, headers: response.headers });
        if (isCut) outgoing.destroy();
      });
    });
    outgoing.on("error", reject);
    if (!isCut) outgoing.end(body);
    else if (readable === 0) outgoing.flushHeaders();
    else outgoing.write(body.subarray(0, readable));
  });
}

function listenWith(t: TestContext, handler: Handler): Promise<number> {
  const server = createServer((request, response) => void handler(request, response));
  t.after(() => (server.closeAllConnections(), server.close()));
  return listen(server);
}

/** The text of an AdmissionReview. */
export function reviewText(request: unknown, more: object = {}): string {
  return JSON.stringify({ kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", request, ...more });
}
