/** One call of the Kubernetes API, from rate limit to parsed response: deadline, throttling, errors and metrics. */
import type { IncomingMessage } from "node:http";
import { describePath, groupOf } from "./api-path.ts";
import { errorOfCall, errorOfStatus } from "./api-error.ts";
import { type Clock, startStopwatch } from "../clock.ts";
import type { Connection } from "./connection.ts";
import { type Deadline, startDeadline, unlessAborted } from "../deadline.ts";
import { RolloutError } from "../errors.ts";
import { readBytes, readChunks, readRetryAfter, readText } from "../http.ts";
import { createJsonListDecoder } from "./json-list.ts";
import { type Decoder, PROTOBUF } from "./protobuf.ts";
import type { RateLimiter } from "./rate-limit.ts";
import type { ListBody } from "./resources.ts";
import type { OnDate } from "../server-clock.ts";
import type { Span, Tracer } from "../tracing/tracer.ts";
import type { Socket } from "node:net";
import http from "node:http";
import https from "node:https";

export interface ApiObserver {
  /**
   * `status` is the HTTP status, or `error` without a response; `seconds` until the head of the response, without the
   * wait for a token.
   */
  answered(call: {
    readonly path: string;
    readonly method: string;
    readonly status: string;
    readonly seconds: number;
  }): void;
  /** A call was not sent, because no token was free before its deadline. */
  rateLimited(group: string): void;
}

export interface Wiring {
  readonly connection: Connection;
  /** The machine's clock: the duration of a call does not depend on the server's clock. */
  readonly clock: Clock;
  readonly limiter: RateLimiter;
  readonly observer: ApiObserver | undefined;
  readonly onDate?: OnDate | undefined;
  readonly tracer: Tracer;
}

export interface ApiCall extends Omit<WireRequest, "path" | "trace"> {
  /** Verb, resource, namespace and name, for errors. */
  readonly what: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Sends the call and resolves with the object of the response. Rejects only with a RolloutError. */
export async function requestObject(wiring: Wiring, call: ApiCall): Promise<unknown> {
  using deadline = startDeadline(call.deadlineMs, call.signal, wiring.clock);
  try {
    const answer = await openAnswer(wiring, call, deadline);
    return parseBody(await readBody(answer, deadline.signal));
  } catch (error) {
    throw errorOfCall(call.what, error);
  }
}

/**
 * Sends the call for a list and yields its parts as they arrive; the last one has the list's metadata. `decoder` is for an
 * answer in protobuf. Rejects only with a RolloutError. The deadline includes the caller's work between the parts.
 */
export async function* requestList<T>(
  wiring: Wiring,
  call: ApiCall,
  decoder: Decoder<ListBody<T>> | undefined,
): AsyncGenerator<ListBody<T>> {
  using deadline = startDeadline(call.deadlineMs, call.signal, wiring.clock);
  try {
    const answer = await openAnswer(wiring, call, deadline);
    const isDecoded = isProtobuf(answer);
    if (isDecoded && !decoder) throw new RolloutError("ServerError", NOT_PROTOBUF);
    const parts = isDecoded && decoder ? decoder : createJsonListDecoder<T>();
    yield* readParts(answer, deadline.signal, { parts, problem: isDecoded ? NOT_PROTOBUF : NOT_JSON });
  } catch (error) {
    throw errorOfCall(call.what, error);
  }
}

async function* readParts<T>(
  answer: IncomingMessage,
  signal: AbortSignal,
  { parts, problem }: { readonly parts: Decoder<ListBody<T>>; readonly problem: string },
): AsyncGenerator<ListBody<T>> {
  let metadata: ListBody<T>["metadata"];
  const decode = (run: () => ListBody<T>): ListBody<T> => {
    try {
      const part = run();
      metadata ??= part.metadata;
      return part;
    } catch (cause) {
      throw new RolloutError("ServerError", problem, { cause });
    }
  };
  for await (const chunk of readChunks(answer, signal)) {
    const { items } = decode(() => parts.read(chunk));
    if (items && items.length > 0) yield { items };
  }
  decode(() => parts.end());
  yield { ...(metadata && { metadata }), items: [] };
}

/**
 * The head of a successful response. A call that is answered with 429 and Retry-After is repeated before the deadline,
 * writes included: the server has not executed it. No other call is repeated, as a write may have taken effect.
 */
export async function openAnswer(wiring: Wiring, call: ApiCall, deadline: Deadline): Promise<IncomingMessage> {
  const path = describePath(call.path);
  for (;;) {
    await takeToken(wiring, groupOf(call.path), deadline);
    deadline.signal.throwIfAborted();
    const answer = await wiring.tracer.span(
      () => spanOf(call, path),
      (span) => measure(wiring, call, { deadline, span, path }),
    );
    const status = answer.statusCode ?? 0;
    if (status < 300) return answer;
    const error = errorOfStatus(status, await readBody(answer, deadline.signal), readRetryAfter(answer.headers));
    if (error.code !== "Throttled" || error.retryAfterMs === undefined || error.retryAfterMs >= deadline.remainingMs())
      throw error;
    await wiring.clock.sleep(error.retryAfterMs, deadline.signal);
    deadline.signal.throwIfAborted();
  }
}

async function takeToken({ limiter, observer }: Wiring, group: string, deadline: Deadline): Promise<void> {
  try {
    await limiter.take(group, deadline.remainingMs(), deadline.signal);
  } catch (error) {
    observer?.rateLimited(group);
    throw error;
  }
}

/** The span of a call, until the head of the answer. */
const spanOf = ({ method, path, what }: ApiCall, described: string) => ({
  name: `${method} ${described}`,
  kind: "client" as const,
  attributes: { "http.request.method": method, "url.path": path, "zonewise.call": what },
});

interface Measured {
  readonly deadline: Deadline;
  readonly span: Span;
  /** The path without names of objects, as metrics and spans have it. */
  readonly path: string;
}

async function measure(
  { connection, clock, observer, onDate, tracer }: Wiring,
  call: ApiCall,
  { deadline, span, path }: Measured,
): Promise<IncomingMessage> {
  const start = clock.monotonic();
  const elapsed = startStopwatch(clock);
  const done = (status: string): void =>
    observer?.answered({
      path,
      method: call.method,
      status,
      seconds: (clock.monotonic() - start) / 1000,
    });
  try {
    const wire = { ...call, path: withQuery(call), trace: tracer.headers() };
    const answer = await openExchange(connection, wire, deadline);
    done(String(answer.statusCode));
    span.set({ "http.response.status_code": answer.statusCode });
    if (isOfApiServer(answer)) onDate?.(answer.headers.date, elapsed());
    return answer;
  } catch (error) {
    done("error");
    throw error;
  }
}

function withQuery({ path, query }: ApiCall): string {
  const set = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return set.length === 0 ? path : `${path}?${new URLSearchParams(set).toString()}`;
}

// A proxy that cannot reach the API server answers 5xx with its own Date.
const isOfApiServer = ({ statusCode = 0 }: IncomingMessage): boolean => statusCode < 500;

const isProtobuf = (answer: IncomingMessage): boolean => answer.headers["content-type"]?.startsWith(PROTOBUF) ?? false;

/** Bytes of a protobuf response, also of a failed call that requested protobuf; otherwise text. */
const readBody = (answer: IncomingMessage, signal: AbortSignal): Promise<Buffer | string> =>
  isProtobuf(answer) ? readBytes(answer, signal) : readText(answer, signal);

const NOT_JSON = "the answer is not JSON";
const NOT_PROTOBUF = "the answer is not the protobuf that was asked for";

function parseBody(body: Buffer | string): unknown {
  if (typeof body !== "string") throw new RolloutError("ServerError", NOT_PROTOBUF);
  try {
    return JSON.parse(body);
  } catch (cause) {
    throw new RolloutError("ServerError", `${NOT_JSON}: ${body.slice(0, 100)}`, { cause });
  }
}

// One HTTP exchange with the API server.

export interface WireRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With the query string, but without `timeout`. */
  readonly path: string;
  readonly accept: string;
  readonly body?: string;
  readonly contentType?: string;
  /** Headers that name the span of the request. */
  readonly trace?: Readonly<Record<string, string>>;
}

const USER_AGENT = "zonewise";

/**
 * Sends the request and resolves with the head of the response; the caller reads the body. The deadline's signal aborts
 * both by closing the connection.
 *
 *   credentials -> connection -> time left? --yes--> the request, with `timeout=<time left>`
 *                                           --no--> `Timeout`: no byte was sent
 *
 * `timeout` makes the server end the request at the same time, so that a write cannot take effect much later. The time
 * left is computed last, as the process may be suspended at any step. It is never 0: the server takes 0 for no timeout.
 */
export async function openExchange(
  connection: Connection,
  wire: WireRequest,
  deadline: Pick<Deadline, "signal" | "remainingMs">,
): Promise<http.IncomingMessage> {
  const { signal } = deadline;
  const options = await unlessAborted(connection.authorize(), signal);
  const { server } = connection;
  const body = wire.body === undefined ? undefined : Buffer.from(wire.body);
  const open = connection.open ?? (server.protocol === "http:" ? http.request : https.request);
  return await new Promise((resolve, reject) => {
    const request = open({
      ...options,
      host: server.hostname.replace(/^\[|\]$/g, ""),
      port: server.port || undefined,
      method: wire.method,
      path: server.pathname.replace(/\/$/, "") + wire.path,
      headers: {
        ...options.headers,
        ...wire.trace,
        "user-agent": USER_AGENT,
        accept: wire.accept,
        ...(body && { "content-type": wire.contentType ?? "application/json", "content-length": body.length }),
      },
    });
    let isAnswered = false;
    const stop = (): void => void request.destroy();
    signal.addEventListener("abort", stop, { once: true });
    request.on("close", () => signal.removeEventListener("abort", stop));
    request.on("error", (error: NodeJS.ErrnoException) => {
      if (signal.aborted) reject(signal.reason);
      // The server closed an idle connection while the request reused it:
      // https://nodejs.org/api/http.html#requestreusedsocket
      else if (!isAnswered && wire.method === "GET" && request.reusedSocket && error.code === "ECONNRESET")
        resolve(openExchange(connection, wire, deadline));
      else reject(error);
    });
    request.on("response", (answer) => {
      isAnswered = true;
      resolve(answer);
    });
    request.setSocketKeepAlive(true, 30_000);
    const send = (): void => {
      const leftMs = Math.floor(deadline.remainingMs());
      if (leftMs <= 0)
        return void request.destroy(new RolloutError("Timeout", "its time was up before it could be sent"));
      request.path += `${request.path.includes("?") ? "&" : "?"}timeout=${leftMs}ms`;
      request.end(body);
    };
    request.on("socket", (socket) => onceOpen(socket, send));
  });
}

/**
 * Calls `then` once the socket is connected: data written earlier would wait in the socket with an outdated timeout.
 */
function onceOpen(socket: Socket & { readonly secureConnecting?: boolean }, then: () => void): void {
  if (socket.secureConnecting) socket.once("secureConnect", then);
  else if (socket.connecting) socket.once("connect", then);
  else then();
}
