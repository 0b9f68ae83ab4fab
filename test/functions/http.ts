/** A webhook behind plain HTTP, and a client that keeps its connections. */
import { Agent, createServer, request as open } from "node:http";
import type { IncomingMessage } from "node:http";
import type { TestContext } from "node:test";
import { type Handler, type Rim, serveWebhook } from "../../functions/http/admission.ts";
import { createBodyReader } from "../../functions/http/body.ts";
import type { Webhook } from "../../functions/http/webhook.ts";
import { createBackgroundTasks } from "../../functions/http/background-tasks.ts";
import { systemClock } from "../../infra/clock.ts";
import { createMetrics, type Metrics } from "../../infra/metrics/metrics.ts";
import { listen } from "../loopback.ts";
import { type Entry, keepingLog } from "./stage.ts";

export interface Asked {
  readonly status: number;
  readonly text: string;
  readonly headers: IncomingMessage["headers"];
}

export interface Served {
  post(body: string | Buffer, more?: { query?: string; type?: string; method?: string; headers?: Record<string, string> }): Promise<Asked>;
  readonly port: number;
  readonly entries: readonly Entry[];
  readonly metrics: Metrics;
}

/** Stops at the end of the test. */
export async function serve(t: TestContext, webhook: Webhook, rim: Partial<Rim> = {}): Promise<Served> {
  const { log, entries } = keepingLog();
  const metrics = createMetrics();
  const tools = { clock: systemClock, log, metrics: metrics.webhooks, tasks: createBackgroundTasks(), readBody: createBodyReader() };
  const port = await listenWith(t, serveWebhook(webhook, { ...tools, requestTimeoutMs: 10_000, ...rim }));
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  t.after(() => agent.destroy());
  return {
    port,
    entries,
    metrics,
    post: (body, { query = "", type = "application/json", method = "POST", headers = {} } = {}) =>
      new Promise((resolve, reject) => {
        const options = { agent, port, host: "127.0.0.1", method, path: `/${query}`, headers: { "content-type": type, ...headers } };
        let answered = false;
        const outgoing = open(options, (response) => {
          answered = true;
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (chunk: string) => (text += chunk));
          response.on("end", () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }));
        });
        // A refused body is not read to its end.
        outgoing.on("error", (error) => answered || reject(error));
        outgoing.end(body);
      }),
  };
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
