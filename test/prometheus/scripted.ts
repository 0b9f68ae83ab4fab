/** A Prometheus that answers what a test tells it. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Socket } from "node:net";
import { readText } from "../../infra/http.ts";
import { listen } from "../loopback.ts";

/** One query that came in. */
interface SeenQuery {
  readonly method: string;
  /** Without its query string. */
  readonly path: string;
  /** The parameters of the URL, without the expression. */
  readonly search: string;
  readonly expr: string;
  /** When it is to be evaluated; absent for now. */
  readonly time?: string;
  readonly headers: IncomingHttpHeaders;
}

/** An answer: a number of series, or a status with a body; `hang` for none at all. */
type Scripted =
  | number
  | { readonly status?: number; readonly body: unknown; readonly headers?: Record<string, string> }
  | "hang";

export interface ScriptedPrometheus extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly seen: SeenQuery[];
  /** Decides each answer; may be changed at any time. */
  answer: (query: SeenQuery) => Scripted;
}

/** An instant vector of so many series. */
export function vector(series: number, extra: object = {}): unknown {
  const result = Array.from({ length: series }, (_, i) => ({
    metric: { __name__: "up", instance: `pod-${i}` },
    value: [1_700_000_000, "1"],
  }));
  return { status: "success", data: { resultType: "vector", result }, ...extra };
}

/** The body of an error of Prometheus. */
export const failure = (error: string, errorType = "bad_data"): unknown => ({ status: "error", errorType, error });

export interface ScriptedTls {
  readonly cert: string;
  readonly key: string;
}

/**
 * Starts one on a free port of the loopback interface, over TLS if a certificate is given; it answers with no series
 * until it is given others.
 */
export async function startPrometheus(tls?: ScriptedTls): Promise<ScriptedPrometheus> {
  const seen: SeenQuery[] = [];
  async function answerQuery(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://prometheus");
    const text = await readText(request, new AbortController().signal);
    const form = request.method === "POST" ? new URLSearchParams(text) : searchParams;
    const expr = form.get("query") ?? "";
    searchParams.delete("query");
    const query = {
      method: request.method ?? "",
      path: pathname,
      search: searchParams.toString(),
      expr,
      ...(form.has("time") && { time: form.get("time") ?? "" }),
      headers: request.headers,
    };
    seen.push(query);
    const scripted = prometheus.answer(query);
    if (scripted === "hang") return;
    const { status = 200, body, headers = {} } = typeof scripted === "number" ? { body: vector(scripted) } : scripted;
    response
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(typeof body === "string" ? body : JSON.stringify(body));
  }
  const onRequest = (request: IncomingMessage, response: ServerResponse): void =>
    void answerQuery(request, response).catch((error: unknown) => response.destroy(error as Error));
  const server = tls ? createTlsServer(tls, onRequest) : createServer(onRequest);
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
  });
  const port = await listen(server);
  const prometheus: ScriptedPrometheus = {
    url: `${tls ? "https" : "http"}://127.0.0.1:${port}`,
    port,
    seen,
    answer: () => 0,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
  return prometheus;
}
