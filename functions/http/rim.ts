/**
 * The rim: one HTTP exchange, from the request to its metrics, of webhooks and of the node API alike.
 *
 *   1. the request counts as in flight; its deadline runs, and ends early if the caller disconnects
 *   2. the endpoint answers; an unexpected error is logged, and answered with 500
 *   3. the answer in one write, the endpoint's log line, the metrics
 *
 * Bounds of bodies: `body.ts`. TLS, certificates and draining: `server.ts`.
 */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Clock } from "../../infra/clock.ts";
import { startDeadline } from "../../infra/deadline.ts";
import type { Log } from "../../infra/log.ts";
import type { WebhookMetrics } from "../../infra/metrics/metrics.ts";
import { type Attributes, NO_TRACER, type Span, type Tracer } from "../../infra/tracing/tracer.ts";
import type { BackgroundTasks } from "./background-tasks.ts";
import type { HttpRefusal, ReadBody } from "./body.ts";

export interface Rim {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: WebhookMetrics;
  /** Without one, nothing is recorded. */
  readonly tracer?: Tracer;
  readonly tasks: BackgroundTasks;
  readonly readBody: ReadBody;
  /** Upper bound of a request in milliseconds, also if its caller grants more. */
  readonly requestTimeoutMs: number;
  /** Resolves with true if the Authorization header is valid. Without it, every caller is admitted. */
  readonly authenticate?: ((authorization: string | undefined) => Promise<boolean>) | undefined;
}

/** Never rejects. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** Share of a request's time that its work may use; the rest is for sending the answer (§8.3). */
export const TIMEOUT_SHARE = 0.9;

/** A request and its bounds. */
export interface Exchange {
  readonly request: IncomingMessage;
  /** Fires at the deadline, or when the caller has gone. */
  readonly signal: AbortSignal;
  /** Milliseconds that the request may take. */
  readonly deadlineMs: number;
  /** The deadline by `clock.monotonic`, milliseconds. */
  readonly deadlineAt: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
  /** Its Content-Length is added. */
  readonly headers: OutgoingHttpHeaders;
  /** Bytes of the body that was read; 0 unless given. */
  readonly receivedBytes?: number | undefined;
  /** Attributes of its span. */
  readonly attributes?: Attributes;
  /** Writes the log line, once the answer is sent. */
  readonly log?: (seconds: number) => void;
}

interface Endpoint {
  /** For the metrics. */
  readonly route: string;
  readonly deadlineMs: (url: string) => number;
  readonly answer: (exchange: Exchange) => Promise<HttpAnswer>;
}

/** Serves an endpoint over HTTP. */
export function serveEndpoint(endpoint: Endpoint, rim: Pick<Rim, "clock" | "log" | "metrics" | "tracer">): Handler {
  const { tracer = NO_TRACER } = rim;
  return async (request, response) => {
    try {
      await tracer.span(
        () => spanOf(endpoint, request),
        (span) => serveOne(endpoint, { ...rim, tracer }, { request, response, span }),
      );
    } catch (error) {
      rim.log.error("unexpected error; the request is answered with 500", { error });
      if (!response.headersSent) send(response, refuseRequest({ status: 500, message: "internal error" }));
    }
  };
}

const spanOf = ({ route }: Endpoint, { headers: caller, method = "" }: IncomingMessage) => ({
  name: `${method} ${route}`,
  kind: "server" as const,
  attributes: { "http.request.method": method, "http.route": route },
  caller,
});

interface Served {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly span: Span;
}

async function serveOne(
  { route, deadlineMs, answer }: Endpoint,
  { clock, metrics, tracer }: Pick<Rim, "clock" | "metrics"> & { readonly tracer: Tracer },
  { request, response, span }: Served,
): Promise<void> {
  const start = clock.monotonic();
  const seconds = (): number => (clock.monotonic() - start) / 1000;
  const { method = "", url = "" } = request;
  metrics.requestStarted(method, route);
  const ms = deadlineMs(url);
  using deadline = startDeadline(ms, undefined, clock);
  response.on("close", () => {
    if (!response.writableFinished) deadline.cancel();
  });
  const answered = await answer({ request, signal: deadline.signal, deadlineMs: ms, deadlineAt: start + ms });
  const sentBytes = send(response, answered);
  answered.log?.(seconds());
  const { status, receivedBytes = 0, attributes } = answered;
  span.set({ "http.response.status_code": status, ...attributes });
  const { traceparent } = tracer.headers();
  metrics.requestDone({ method, route, status, seconds: seconds(), receivedBytes, sentBytes, traceparent });
}

/** An answer that closes the connection, as the rest of the body is not read. By default it says `message` as text. */
export function refuseRequest({ status, message }: HttpRefusal, json?: object): HttpAnswer {
  return {
    status,
    text: json === undefined ? `${message}\n` : JSON.stringify(json),
    headers: {
      connection: "close",
      "content-type": json === undefined ? "text/plain; charset=utf-8" : "application/json",
      ...(status === 401 && { "www-authenticate": "Bearer" }),
      ...(status === 405 && { allow: "POST" }),
    },
  };
}

function send(response: ServerResponse, { status, text, headers }: HttpAnswer): number {
  const bytes = Buffer.byteLength(text);
  // Node sends a string in one write with the headers, but not a buffer.
  response.writeHead(status, { ...headers, "content-length": bytes }).end(text);
  return bytes;
}

/**
 * The path without the query and without a trailing slash: a trailing slash in the webhook configuration makes API
 * servers open new connections (§0.4).
 */
export function requestPath(url: string): string {
  const query = url.indexOf("?");
  const path = query < 0 ? url : url.slice(0, query);
  return path.endsWith("/") ? path.slice(0, -1) : path;
}
